//! The imports, exports and size of a component, read in one pass before compilation.
//!
//! A component that exceeds any of these limits, or whose imports and exports do not fit its role, is refused before it is
//! compiled. The parser is newer than wasmtime's, which overflows the stack on deeply nested types.

use wasmparser::{
    BinaryReaderError, ComponentExternalKind, ComponentInstance, ElementItems, FromReader,
    Instance, Parser, Payload, SectionLimited, ValidPayload, Validator,
    component_types::{ComponentAnyTypeId, ComponentEntityType},
    types::{Types, TypesRef},
};

use crate::load_error::PluginRefusedError;

/// The first bytes of all WebAssembly modules and components.
const MAGIC_NUMBER: &[u8] = b"\0asm";
/// The maximum number of nested modules and components.
const MODULES_MAX: u64 = 64;
/// The maximum number of all other declarations: types, imports, exports, instances and their arguments, aliases, tables,
/// memories, globals, segments of data.
const DECLARATIONS_MAX: u64 = 100_000;
/// The maximum number of segments of elements and of the elements in them.
const ELEMENTS_MAX: u64 = 100_000;
/// The maximum size of all types, in bytes. A type can have any number of parts: the types of a recursive group, parameters,
/// fields, and the declarations of an instance or component.
const TYPE_BYTES_MAX: u64 = 256 * 1_024;
/// The maximum size of all imports and exports of components, in bytes. Their names appear in messages, in logs, and in the output
/// of commands.
const INTERFACE_BYTES_MAX: u64 = 64 * 1_024;

/// The imports and exports of a component.
pub(crate) struct Outline {
    pub(crate) imports: Vec<Import>,
    /// The names of its exports, without types.
    pub(crate) exports: Vec<String>,
}

pub(crate) struct Import {
    pub(crate) name: String,
    /// Whether it only names types other than resources, which grant no access.
    pub(crate) has_only_types: bool,
}

impl Outline {
    /// Reads a component without validating the code of its functions.
    ///
    /// # Errors
    /// [`PluginRefusedError::NotWebAssembly`], [`PluginRefusedError::NotAComponent`], and [`PluginRefusedError::TooComplex`] for the first limit that it exceeds.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, PluginRefusedError> {
        let not_a_component =
            |cause: BinaryReaderError| PluginRefusedError::not_a_component(&cause.to_string());
        // For other files, the parser's message has many lines.
        if !bytes.starts_with(MAGIC_NUMBER) {
            return Err(PluginRefusedError::NotWebAssembly);
        }
        let mut validator = Validator::new();
        let (mut size, mut depth) = (Size::default(), 0_u32);
        let (mut imports, mut exports) = (Vec::new(), Vec::new());
        for payload in Parser::new(0).parse_all(bytes) {
            let payload = payload.map_err(not_a_component)?;
            size.add(&payload).map_err(not_a_component)?;
            size.check()?;
            match &payload {
                Payload::Version { .. } => depth += 1,
                Payload::End(_) => depth -= 1,
                Payload::ComponentImportSection(section) if depth == 1 => {
                    for import in section.clone() {
                        imports.push(import.map_err(not_a_component)?.name.name.to_owned());
                    }
                }
                Payload::ComponentExportSection(section) if depth == 1 => {
                    for export in section.clone() {
                        let export = export.map_err(not_a_component)?;
                        if export.kind != ComponentExternalKind::Type {
                            exports.push(export.name.name.to_owned());
                        }
                    }
                }
                _ => {}
            }
            let valid = validator.payload(&payload).map_err(not_a_component)?;
            if let (ValidPayload::End(types), 0) = (valid, depth) {
                return Ok(Self {
                    imports: imports_of(imports, &types),
                    exports,
                });
            }
        }
        Err(PluginRefusedError::not_a_component(
            "the component is truncated",
        ))
    }

    /// Returns the names of all imports, including types, and of all exports.
    pub(crate) fn interface_names(&self) -> impl Iterator<Item = &str> {
        let imports = self.imports.iter().map(|import| import.name.as_str());
        imports.chain(self.exports.iter().map(String::as_str))
    }

    /// Returns the names of imports that are more than types.
    pub(crate) fn imported(&self) -> impl Iterator<Item = &str> {
        let imports = self.imports.iter();
        let imports = imports.filter(|import| !import.has_only_types);
        imports.map(|import| import.name.as_str())
    }
}

fn imports_of(names: Vec<String>, types: &Types) -> Vec<Import> {
    let types = types.as_ref();
    let imports = names.into_iter().map(|name| Import {
        has_only_types: has_only_types(&name, types),
        name,
    });
    imports.collect()
}

fn has_only_types(import: &str, types: TypesRef<'_>) -> bool {
    let Some(ComponentEntityType::Instance(instance)) =
        types.component_item_for_import(import).map(|item| item.ty)
    else {
        return false;
    };
    types.get(instance).is_some_and(|instance| {
        let mut exports = instance.exports.values();
        exports.all(|export| match export.ty {
            // The host implements resources.
            ComponentEntityType::Type { referenced, .. } => {
                !matches!(referenced, ComponentAnyTypeId::Resource(_))
            }
            _ => false,
        })
    })
}

/// The sizes of a component, as far as it was read.
#[derive(Debug, Default)]
struct Size {
    modules: u64,
    declarations: u64,
    elements: u64,
    type_bytes: u64,
    interface_bytes: u64,
}

impl Size {
    fn add(&mut self, payload: &Payload<'_>) -> wasmparser::Result<()> {
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
            Payload::ComponentImportSection(section) => {
                self.interface_bytes += bytes(section);
                section.count()
            }
            Payload::ComponentExportSection(section) => {
                self.interface_bytes += bytes(section);
                section.count()
            }
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => {
                self.modules += 1;
                0
            }
            _ => 0,
        };
        self.declarations += u64::from(declarations);
        Ok(())
    }

    /// Counts the bytes of types, and returns the number of types.
    fn types<T>(&mut self, section: &SectionLimited<'_, T>) -> u32 {
        self.type_bytes += bytes(section);
        section.count()
    }

    fn check(&self) -> Result<(), PluginRefusedError> {
        let exceeded = [
            (self.modules, "modules", MODULES_MAX),
            (self.declarations, "declarations", DECLARATIONS_MAX),
            (self.elements, "elements", ELEMENTS_MAX),
            (self.type_bytes, "bytes of types", TYPE_BYTES_MAX),
            (
                self.interface_bytes,
                "bytes of imports and exports",
                INTERFACE_BYTES_MAX,
            ),
        ]
        .into_iter()
        .find(|(found, _, max)| found > max);
        exceeded.map_or(Ok(()), |(_, what, max)| {
            Err(PluginRefusedError::TooComplex { what, max })
        })
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

fn bytes<T>(section: &SectionLimited<'_, T>) -> u64 {
    let range = section.range();
    range.end.saturating_sub(range.start)
}

fn length<T>(items: &[T]) -> u32 {
    u32::try_from(items.len()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Encodes a number as LEB128.
    fn number(mut value: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        loop {
            let low = u8::try_from(value & 0x7f).unwrap();
            value >>= 7;
            if value == 0 {
                bytes.push(low);
                return bytes;
            }
            bytes.push(low | 0x80);
        }
    }

    fn section(id: u8, content: &[u8]) -> Vec<u8> {
        [&[id], number(content.len()).as_slice(), content].concat()
    }

    /// Encodes a vector of `count` equal items.
    fn items(count: usize, item: &[u8]) -> Vec<u8> {
        [number(count), item.repeat(count)].concat()
    }

    fn component(sections: &[Vec<u8>]) -> Vec<u8> {
        [b"\0asm\x0d\0\x01\0".as_slice(), &sections.concat()].concat()
    }

    /// Returns a component with one module of `count` functions with this body.
    fn of_functions(count: usize, body: &[u8]) -> Vec<u8> {
        let body = [number(body.len()), body.to_vec()].concat();
        let module = [
            b"\0asm\x01\0\0\0".to_vec(),
            section(1, &[1, 0x60, 0, 0]),
            section(3, &items(count, &[0])),
            section(10, &items(count, &body)),
        ];
        component(&[section(1, &module.concat())])
    }

    fn limit(number: u64) -> usize {
        usize::try_from(number).unwrap()
    }

    fn refused(component: &[u8]) -> Option<&'static str> {
        match Outline::read(component) {
            Ok(_) => None,
            Err(PluginRefusedError::TooComplex { what, .. }) => Some(what),
            Err(refusal) => panic!("{refusal}"),
        }
    }

    #[test]
    fn each_limit_is_allowed_and_one_past_it_is_refused() {
        let modules = |count| {
            component(
                &section(1, b"\0asm\x01\0\0\0")
                    .repeat(count)
                    .chunks(10)
                    .map(<[u8]>::to_vec)
                    .collect::<Vec<_>>(),
            )
        };
        // Types of one byte.
        let types = |count| component(&[section(7, &items(count, &[0x7f]))]);
        // A type of an instance that declares types.
        let declaring = |count| {
            let declared = [vec![1, 0x42], items(count, &[1, 0x7f])];
            component(&[section(7, &declared.concat())])
        };
        let module = |content: Vec<u8>| {
            let header = b"\0asm\x01\0\0\0";
            component(&[section(1, &[header, content.as_slice()].concat())])
        };
        // A recursive group of types of functions without parameters and results.
        let recursive = |count| {
            let group = [vec![1, 0x4e], items(count, &[0x60, 0, 0])];
            module(section(1, &group.concat()))
        };
        // An import of a function, in a section of this size.
        let importing = |bytes| {
            let name = vec![b'a'; bytes - 7];
            let import = [vec![1, 0], number(name.len()), name, vec![1, 0]];
            component(&[
                section(7, &[1, 0x40, 0, 1, 0]),
                section(10, &import.concat()),
            ])
        };
        // A segment of null references.
        let elements = |count| {
            let segment = [vec![1, 5, 0x70], items(count, &[0xd0, 0x70, 0x0b])];
            module(section(9, &segment.concat()))
        };
        // An instance of exported functions, and one with arguments.
        let exporting = |count| {
            let instance = [vec![1, 1], items(count, &[1, b'a', 0, 0])];
            component(&[section(2, &instance.concat())])
        };
        let instantiating = |count| {
            let instance = [vec![1, 0, 0], items(count, &[1, b'a', 0x12, 0])];
            component(&[section(2, &instance.concat())])
        };
        for (component, expected) in [
            (modules(limit(MODULES_MAX)), None),
            (modules(limit(MODULES_MAX) + 1), Some("modules")),
            (types(limit(DECLARATIONS_MAX)), None),
            (types(limit(DECLARATIONS_MAX) + 1), Some("declarations")),
            (elements(limit(ELEMENTS_MAX) - 1), None),
            (elements(limit(ELEMENTS_MAX)), Some("elements")),
            (exporting(limit(DECLARATIONS_MAX)), Some("declarations")),
            (instantiating(limit(DECLARATIONS_MAX)), Some("declarations")),
            (declaring(limit(TYPE_BYTES_MAX) / 2 - 4), None),
            (declaring(limit(TYPE_BYTES_MAX) / 2), Some("bytes of types")),
            (recursive(limit(TYPE_BYTES_MAX) / 3), Some("bytes of types")),
            (importing(limit(INTERFACE_BYTES_MAX)), None),
            (
                importing(limit(INTERFACE_BYTES_MAX) + 1),
                Some("bytes of imports and exports"),
            ),
        ] {
            assert_eq!(refused(&component), expected);
        }
    }

    /// A parser without a limit on their nesting would overflow the stack.
    #[test]
    fn deeply_nested_types_are_refused() {
        for nested in [0x41, 0x42] {
            let deep = [[nested, 1, 1].repeat(80_000), vec![nested, 0]].concat();
            let component = component(&[section(7, &[vec![1], deep].concat())]);
            assert!(matches!(
                Outline::read(&component),
                Err(PluginRefusedError::NotAComponent(_))
            ));
        }
    }

    #[test]
    fn names_in_the_error_for_an_invalid_component_are_escaped() {
        let module = [
            b"\0asm\x01\0\0\0".to_vec(),
            section(1, &[1, 0x60, 0, 0]),
            section(2, &[&[1, 2], "\u{9b}".as_bytes(), &[0, 0, 0]].concat()),
        ];
        // An instance of the module without the imported instance.
        let component = component(&[section(1, &module.concat()), section(2, &[1, 0, 0, 0])]);
        let refused = Outline::read(&component).err().unwrap().to_string();
        assert!(refused.contains("named `\\u{9b}`"), "{refused}");
    }

    #[test]
    fn bytes_that_are_not_a_component_are_refused() {
        let whole = of_functions(3, &[0, 0x0b]);
        let cut = whole.split_last().unwrap().1;
        for bytes in [cut, b"\0asm\x0d\0\x01\0\xff", b"\0asm"] {
            assert!(matches!(
                Outline::read(bytes),
                Err(PluginRefusedError::NotAComponent(_))
            ));
        }
        for bytes in [&b"(component)"[..], b""] {
            let refused = Outline::read(bytes).err();
            assert!(matches!(refused, Some(PluginRefusedError::NotWebAssembly)));
        }
    }
}
