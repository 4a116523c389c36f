//! The size of a component, counted while it is read. The time and memory for compilation are proportional to these numbers.

use wasmparser::{
    ComponentAlias, ComponentExternalKind, ComponentInstance, ComponentOuterAliasKind, Encoding,
    FunctionBody, Instance, Operator, Payload,
};

use crate::load_error::PluginRefusedError;

/// The maximum number of functions in all modules of a component.
pub(super) const FUNCTIONS_MAX: u64 = 40_000;
/// The maximum of a function's bytes plus its local variables.
pub(super) const FUNCTION_BYTES_MAX: u64 = 1 << 20;
/// The maximum size of all functions' code, in bytes.
pub(super) const CODE_BYTES_MAX: u64 = 32 << 20;
/// The maximum number of pairs of loops in the same function: the sum of the squares of the functions' loops, to which the time
/// for compilation is proportional. An interpreter of JavaScript has about 450,000.
pub(super) const LOOP_PAIRS_MAX: u64 = 10_000_000;
/// The maximum number of instances of modules and components. A nested component counts as often as it is instantiated, with
/// everything in it.
pub(super) const INSTANCES_MAX: u64 = 1_000;
/// The maximum number of canonical functions (lifted, lowered or built in), in each instance of a component. The compiler
/// generates code for each.
pub(super) const CANONICAL_FUNCTIONS_MAX: u64 = 1_000;
/// The maximum number of nested modules and components.
pub(super) const MODULES_MAX: u64 = 64;
/// The maximum number of all other declarations: types, imports, exports, instances, aliases, tables, memories, globals,
/// segments.
pub(super) const DECLARATIONS_MAX: u64 = 100_000;

/// The sizes of a component, as far as it was read.
#[derive(Debug, Default)]
pub(super) struct Size {
    functions: u64,
    /// Of the largest function.
    function_bytes: u64,
    code_bytes: u64,
    loop_pairs: u64,
    modules: u64,
    declarations: u64,
}

impl Size {
    pub(super) fn add(&mut self, payload: &Payload<'_>) -> wasmparser::Result<()> {
        let declarations = match payload {
            Payload::TypeSection(section) => section.count(),
            Payload::ImportSection(section) => section.count(),
            Payload::TableSection(section) => section.count(),
            Payload::MemorySection(section) => section.count(),
            Payload::TagSection(section) => section.count(),
            Payload::GlobalSection(section) => section.count(),
            Payload::ExportSection(section) => section.count(),
            Payload::ElementSection(section) => section.count(),
            Payload::DataSection(section) => section.count(),
            Payload::InstanceSection(section) => section.count(),
            Payload::CoreTypeSection(section) => section.count(),
            Payload::ComponentInstanceSection(section) => section.count(),
            Payload::ComponentAliasSection(section) => section.count(),
            Payload::ComponentTypeSection(section) => section.count(),
            Payload::ComponentImportSection(section) => section.count(),
            Payload::ComponentExportSection(section) => section.count(),
            Payload::FunctionSection(section) => {
                self.functions += u64::from(section.count());
                0
            }
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => {
                self.modules += 1;
                0
            }
            Payload::CodeSectionEntry(body) => {
                let bytes = function_bytes(body)?;
                self.function_bytes = self.function_bytes.max(bytes);
                self.code_bytes += bytes;
                let loops = loops(body)?;
                self.loop_pairs = self.loop_pairs.saturating_add(loops * loops);
                0
            }
            _ => 0,
        };
        self.declarations += u64::from(declarations);
        Ok(())
    }

    pub(super) fn check(&self) -> Result<(), PluginRefusedError> {
        let exceeded = [
            (self.functions, "functions", FUNCTIONS_MAX),
            (
                self.function_bytes,
                "bytes and local variables in one function",
                FUNCTION_BYTES_MAX,
            ),
            (self.code_bytes, "bytes of code", CODE_BYTES_MAX),
            (
                self.loop_pairs,
                "pairs of loops in the same function",
                LOOP_PAIRS_MAX,
            ),
            (self.modules, "modules", MODULES_MAX),
            (self.declarations, "declarations", DECLARATIONS_MAX),
        ];
        check_all(&exceeded)
    }
}

/// Refuses the first number, with its name, that exceeds its maximum.
fn check_all(numbers: &[(u64, &'static str, u64)]) -> Result<(), PluginRefusedError> {
    let exceeded = numbers.iter().find(|(found, _, max)| found > max);
    exceeded.map_or(Ok(()), |&(_, what, max)| {
        Err(PluginRefusedError::TooComplex { what, max })
    })
}

/// The instances in a component. A few bytes can instantiate a nested component any number of times, and the components nested
/// in it as well.
#[derive(Debug, Default)]
pub(super) struct Instances {
    /// The modules and components that are being read, the innermost last.
    open: Vec<Scope>,
}

/// A module or component.
#[derive(Debug, Default)]
struct Scope {
    is_component: bool,
    contents: Contents,
    /// The contents of each component in its index space; `None` if the file does not define the component.
    components: Vec<Option<Contents>>,
}

/// The contents of one instance of a component, including the instances in it.
#[derive(Clone, Copy, Debug, Default)]
struct Contents {
    instances: u64,
    /// Instances of components that the file does not define.
    unknown_instances: u64,
    canonical_functions: u64,
}

impl Instances {
    pub(super) fn add(&mut self, payload: &Payload<'_>) -> wasmparser::Result<()> {
        match payload {
            Payload::Version { encoding, .. } => self.open.push(Scope {
                is_component: *encoding == Encoding::Component,
                ..Scope::default()
            }),
            Payload::End(_) => {
                let ended = self.open.pop().filter(|scope| scope.is_component);
                if let (Some(outer), Some(ended)) = (self.open.last_mut(), ended) {
                    outer.components.push(Some(ended.contents));
                }
            }
            Payload::ComponentAliasSection(section) => {
                for alias in section.clone() {
                    self.add_alias(&alias?);
                }
            }
            payload => {
                if let Some(scope) = self.open.last_mut() {
                    scope.add(payload)?;
                }
            }
        }
        Ok(())
    }

    fn add_alias(&mut self, alias: &ComponentAlias<'_>) {
        let aliased = match alias {
            ComponentAlias::InstanceExport {
                kind: ComponentExternalKind::Component,
                ..
            } => None,
            ComponentAlias::Outer {
                kind: ComponentOuterAliasKind::Component,
                count,
                index,
            } => {
                let mut scopes = self.open.iter().rev();
                let outer = scopes.nth(*count as usize);
                outer.and_then(|scope| scope.component(*index))
            }
            _ => return,
        };
        if let Some(scope) = self.open.last_mut() {
            scope.components.push(aliased);
        }
    }

    pub(super) fn check(&self) -> Result<(), PluginRefusedError> {
        let Some(scope) = self.open.last() else {
            return Ok(());
        };
        let contents = scope.contents;
        check_all(&[
            (contents.instances, "instances", INSTANCES_MAX),
            (
                contents.unknown_instances,
                "instances of imported components",
                0,
            ),
            (
                contents.canonical_functions,
                "canonical functions",
                CANONICAL_FUNCTIONS_MAX,
            ),
        ])
    }
}

impl Scope {
    fn add(&mut self, payload: &Payload<'_>) -> wasmparser::Result<()> {
        match payload {
            Payload::ComponentCanonicalSection(section) => {
                self.contents.canonical_functions += u64::from(section.count());
            }
            Payload::InstanceSection(section) => {
                for instance in section.clone() {
                    let is_of_module = matches!(instance?, Instance::Instantiate { .. });
                    self.contents.instances += u64::from(is_of_module);
                }
            }
            Payload::ComponentInstanceSection(section) => {
                for instance in section.clone() {
                    if let ComponentInstance::Instantiate {
                        component_index, ..
                    } = instance?
                    {
                        let of = self.component(component_index);
                        self.contents.add_instance(of);
                    }
                }
            }
            Payload::ComponentImportSection(section) => {
                for import in section.clone() {
                    if import?.ty.kind() == ComponentExternalKind::Component {
                        self.components.push(None);
                    }
                }
            }
            Payload::ComponentExportSection(section) => {
                for export in section.clone() {
                    let export = export?;
                    if export.kind == ComponentExternalKind::Component {
                        self.components.push(self.component(export.index));
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn component(&self, index: u32) -> Option<Contents> {
        self.components.get(index as usize).copied().flatten()
    }
}

impl Contents {
    fn add_instance(&mut self, of: Option<Self>) {
        self.instances = self.instances.saturating_add(1);
        let Some(of) = of else {
            self.unknown_instances += 1;
            return;
        };
        self.instances = self.instances.saturating_add(of.instances);
        let functions = self.canonical_functions;
        self.canonical_functions = functions.saturating_add(of.canonical_functions);
    }
}

/// Returns the bytes of a function plus its local variables, because a few bytes can declare any number of them.
fn function_bytes(body: &FunctionBody<'_>) -> wasmparser::Result<u64> {
    let range = body.range();
    let mut bytes = range.end.saturating_sub(range.start);
    for local in body.get_locals_reader()? {
        let (count, _) = local?;
        bytes = bytes.saturating_add(u64::from(count));
    }
    Ok(bytes)
}

/// Returns the number of loops in a function.
fn loops(body: &FunctionBody<'_>) -> wasmparser::Result<u64> {
    let mut loops = 0;
    for operator in body.get_operators_reader()? {
        loops += u64::from(matches!(operator?, Operator::Loop { .. }));
    }
    Ok(loops)
}
