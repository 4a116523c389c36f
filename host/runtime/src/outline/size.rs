//! The size of a component, counted while it is read. The time and memory for compilation are proportional to these numbers.

use wasmparser::{
    BlockType, ComponentAlias, ComponentExternalKind, ComponentInstance, ComponentOuterAliasKind,
    CompositeInnerType, ElementItems, Encoding, FromReader, FuncToValidate, FuncType, FunctionBody,
    Instance, Operator, Payload, SectionLimited, ValidatorResources, WasmModuleResources,
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
/// The maximum number of instructions in loops, each counted once for each loop around it. The time for compilation grows
/// faster than it. An interpreter of JavaScript has about 2,000,000.
pub(super) const LOOPED_INSTRUCTIONS_MAX: u64 = 50_000_000;
/// The maximum number of pairs of branches in the same function: the sum of the squares of the functions' branches. The time for
/// compilation can be proportional to it. An interpreter of JavaScript has about 180,000,000.
pub(super) const BRANCH_PAIRS_MAX: u64 = 1_000_000_000;
/// The maximum number of pairs of values that blocks of the same function return, or loops receive. The memory for compilation is
/// proportional to it. An interpreter of JavaScript has about 4,000,000.
pub(super) const PASSED_PAIRS_MAX: u64 = 40_000_000;
/// The maximum number of pairs of branches to the same label, for each value that they may merge: a local variable, or a value
/// that they pass to the label. The time for compilation is proportional to it. An interpreter of JavaScript has about
/// 92,000,000.
pub(super) const LABEL_PAIRS_MAX: u64 = 400_000_000;
/// The maximum number of pairs of values that branches to the same label may merge. An interpreter of JavaScript has about
/// 4,000,000,000.
pub(super) const MERGE_PAIRS_MAX: u64 = 20_000_000_000;
/// The maximum number of instances of modules and components. A nested component counts as often as it is instantiated, with
/// everything in it.
pub(super) const INSTANCES_MAX: u64 = 1_000;
/// The maximum number of canonical functions (lifted, lowered or built in), in each instance of a component. The compiler
/// generates code for each.
pub(super) const CANONICAL_FUNCTIONS_MAX: u64 = 1_000;
/// The maximum number of nested modules and components.
pub(super) const MODULES_MAX: u64 = 64;
/// The maximum number of all other declarations: types, imports, exports, instances and their arguments, aliases, tables,
/// memories, globals, segments of data.
pub(super) const DECLARATIONS_MAX: u64 = 100_000;
/// The maximum number of segments of elements and of the elements in them.
pub(super) const ELEMENTS_MAX: u64 = 100_000;
/// The maximum size of all types, in bytes. A type can have any number of parts: the types of a recursive group, parameters,
/// fields, and the declarations of an instance or component.
pub(super) const TYPE_BYTES_MAX: u64 = 256 * 1_024;

/// The sizes of a component, as far as it was read.
#[derive(Debug, Default)]
pub(super) struct Size {
    functions: u64,
    /// Of the largest function.
    function_bytes: u64,
    code_bytes: u64,
    loop_pairs: u64,
    looped_instructions: u64,
    branch_pairs: u64,
    passed_pairs: u64,
    label_pairs: u64,
    merge_pairs: u64,
    modules: u64,
    declarations: u64,
    elements: u64,
    type_bytes: u64,
}

impl Size {
    pub(super) fn add(&mut self, payload: &Payload<'_>) -> wasmparser::Result<()> {
        let declarations = match payload {
            Payload::TypeSection(section) => self.types(section),
            Payload::ImportSection(section) => section.count(),
            Payload::TableSection(section) => section.count(),
            Payload::MemorySection(section) => section.count(),
            Payload::TagSection(section) => section.count(),
            Payload::GlobalSection(section) => section.count(),
            Payload::ExportSection(section) => section.count(),
            Payload::ElementSection(section) => {
                let elements = with_contents(section, |segment| match &segment.items {
                    ElementItems::Functions(items) => items.count(),
                    ElementItems::Expressions(_, items) => items.count(),
                })?;
                self.elements += u64::from(elements);
                0
            }
            Payload::DataSection(section) => section.count(),
            Payload::InstanceSection(section) => {
                with_contents(section, |instance| match instance {
                    Instance::Instantiate { args, .. } => length(args),
                    Instance::FromExports(exports) => length(exports),
                })?
            }
            Payload::CoreTypeSection(section) => self.types(section),
            Payload::ComponentInstanceSection(section) => {
                with_contents(section, |instance| match instance {
                    ComponentInstance::Instantiate { args, .. } => length(args),
                    ComponentInstance::FromExports(exports) => length(exports),
                })?
            }
            Payload::ComponentAliasSection(section) => section.count(),
            Payload::ComponentTypeSection(section) => self.types(section),
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
                0
            }
            _ => 0,
        };
        self.declarations += u64::from(declarations);
        Ok(())
    }

    /// Counts the loops and branches of a function, whose types are valid.
    pub(super) fn add_function(
        &mut self,
        function: &FuncToValidate<ValidatorResources>,
        body: &FunctionBody<'_>,
    ) -> wasmparser::Result<()> {
        let type_of = |index| function_type(&function.resources, index);
        let own = type_of(function.ty);
        let mut locals = own.map_or(0, |own| own.params().len() as u64);
        for local in body.get_locals_reader()? {
            locals += u64::from(local?.0);
        }
        let mut branches = Branches::new(locals, own.map_or(0, |own| own.results().len()));
        for operator in body.get_operators_reader()? {
            branches.add(&operator?, type_of)?;
        }
        for (pairs, more) in [
            (&mut self.loop_pairs, squared(branches.loops)),
            (&mut self.looped_instructions, branches.looped_instructions),
            (&mut self.branch_pairs, squared(branches.count)),
            (&mut self.passed_pairs, squared(branches.passed)),
            (&mut self.label_pairs, branches.label_pairs),
            (&mut self.merge_pairs, branches.merge_pairs),
        ] {
            *pairs = pairs.saturating_add(more);
        }
        Ok(())
    }

    /// Counts the bytes of types, and returns the number of types.
    fn types<T>(&mut self, section: &SectionLimited<'_, T>) -> u32 {
        let range = section.range();
        self.type_bytes += range.end.saturating_sub(range.start);
        section.count()
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
            (
                self.looped_instructions,
                "instructions in loops, each counted once for each loop around it",
                LOOPED_INSTRUCTIONS_MAX,
            ),
            (
                self.branch_pairs,
                "pairs of branches in the same function",
                BRANCH_PAIRS_MAX,
            ),
            (
                self.passed_pairs,
                "pairs of values that blocks pass in the same function",
                PASSED_PAIRS_MAX,
            ),
            (
                self.label_pairs,
                "pairs of branches to the same label, for each value that they may merge",
                LABEL_PAIRS_MAX,
            ),
            (
                self.merge_pairs,
                "pairs of values that branches to the same label may merge",
                MERGE_PAIRS_MAX,
            ),
            (self.modules, "modules", MODULES_MAX),
            (self.declarations, "declarations", DECLARATIONS_MAX),
            (self.elements, "elements", ELEMENTS_MAX),
            (self.type_bytes, "bytes of types", TYPE_BYTES_MAX),
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

/// Returns the number of items in a section plus the number of their contents.
fn with_contents<'a, T: FromReader<'a>>(
    section: &SectionLimited<'a, T>,
    contents: impl Fn(&T) -> u32,
) -> wasmparser::Result<u32> {
    let mut count = section.count();
    for item in section.clone() {
        count = count.saturating_add(contents(&item?));
    }
    Ok(count)
}

fn length<T>(items: &[T]) -> u32 {
    u32::try_from(items.len()).unwrap_or(u32::MAX)
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

/// The loops and branches of a function, counted while it is read.
struct Branches {
    /// The open labels, the innermost last.
    labels: Vec<Label>,
    locals: u64,
    loops: u64,
    open_loops: u64,
    looped_instructions: u64,
    count: u64,
    /// The values that blocks return and loops receive.
    passed: u64,
    label_pairs: u64,
    merge_pairs: u64,
}

/// A label in a function.
struct Label {
    is_loop: bool,
    branches: u64,
    /// The local variables, and the values that a branch passes.
    values: u64,
}

impl Branches {
    fn new(locals: u64, results: usize) -> Self {
        let mut branches = Self {
            labels: Vec::new(),
            locals,
            loops: 0,
            open_loops: 0,
            looped_instructions: 0,
            count: 0,
            passed: 0,
            label_pairs: 0,
            merge_pairs: 0,
        };
        branches.open(false, results);
        branches
    }

    fn add<'t>(
        &mut self,
        operator: &Operator<'_>,
        type_of: impl Fn(u32) -> Option<&'t FuncType>,
    ) -> wasmparser::Result<()> {
        self.looped_instructions += self.open_loops;
        match operator {
            Operator::Loop { blockty } => {
                self.loops += 1;
                self.open_loops += 1;
                let passed = match *blockty {
                    BlockType::FuncType(index) => type_of(index).map_or(0, |of| of.params().len()),
                    BlockType::Empty | BlockType::Type(_) => 0,
                };
                self.open(true, passed);
            }
            Operator::If { blockty } => {
                self.count += 1;
                self.open(false, results(*blockty, type_of));
            }
            Operator::Block { blockty } | Operator::Try { blockty } => {
                self.open(false, results(*blockty, type_of));
            }
            Operator::TryTable { try_table } => self.open(false, results(try_table.ty, type_of)),
            Operator::Br { relative_depth } | Operator::BrIf { relative_depth } => {
                self.branch(*relative_depth);
            }
            Operator::BrTable { targets } => {
                let mut depths = targets.targets().collect::<wasmparser::Result<Vec<_>>>()?;
                depths.push(targets.default());
                depths.sort_unstable();
                // The compiler merges equal targets.
                depths.dedup();
                for depth in depths {
                    self.branch(depth);
                }
            }
            // The compiler adds a branch that passes a value.
            Operator::CallIndirect { .. }
            | Operator::ReturnCallIndirect { .. }
            | Operator::MemoryGrow { .. }
            | Operator::TableGet { .. }
            | Operator::TableGrow { .. } => {
                self.count += 1;
                self.passed += 1;
            }
            Operator::End => self.close(),
            _ => {}
        }
        Ok(())
    }

    fn open(&mut self, is_loop: bool, passed: usize) {
        let passed = passed as u64;
        self.passed += passed;
        self.labels.push(Label {
            is_loop,
            branches: 0,
            values: self.locals + passed,
        });
    }

    fn close(&mut self) {
        if let Some(label) = self.labels.pop() {
            self.open_loops -= u64::from(label.is_loop);
            let pairs = squared(label.branches).saturating_mul(label.values);
            self.label_pairs = self.label_pairs.saturating_add(pairs);
            let pairs = pairs.saturating_mul(label.values);
            self.merge_pairs = self.merge_pairs.saturating_add(pairs);
        }
    }

    /// Counts a branch. Skips a label that does not exist, which the compiler refuses.
    fn branch(&mut self, depth: u32) {
        self.count += 1;
        if let Some(label) = self.labels.iter_mut().nth_back(depth as usize) {
            label.branches += 1;
        }
    }
}

fn squared(number: u64) -> u64 {
    number.saturating_mul(number)
}

/// Returns the number of results of a block.
fn results<'t>(block: BlockType, type_of: impl Fn(u32) -> Option<&'t FuncType>) -> usize {
    match block {
        BlockType::Empty => 0,
        BlockType::Type(_) => 1,
        BlockType::FuncType(index) => type_of(index).map_or(0, |of| of.results().len()),
    }
}

fn function_type(types: &ValidatorResources, index: u32) -> Option<&FuncType> {
    match &types.sub_type_at(index)?.composite_type.inner {
        CompositeInnerType::Func(of) => Some(of),
        _ => None,
    }
}
