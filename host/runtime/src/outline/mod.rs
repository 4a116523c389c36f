//! The imports, exports and size of a component, read in one pass before compilation.
//!
//! Compilation can take far more time and memory than the file's size suggests. A component that exceeds any limit in `size.rs`,
//! or whose imports and exports do not fit its role, is therefore refused first. The parser is newer than wasmtime's, which
//! overflows the stack on deeply nested types.

mod size;

use wasmparser::{
    ComponentExternalKind, Parser, Payload, ValidPayload, Validator,
    component_types::ComponentEntityType,
    types::{Types, TypesRef},
};

use crate::load_error::PluginRefusedError;
use size::{Instances, Size};

/// The first bytes of all WebAssembly modules and components.
const MAGIC_NUMBER: &[u8] = b"\0asm";

/// The imports and exports of a component.
pub(crate) struct Outline {
    pub(crate) imports: Vec<Import>,
    /// The names of its exports, without types.
    pub(crate) exports: Vec<String>,
}

/// An import of a component.
pub(crate) struct Import {
    pub(crate) name: String,
    /// Whether it only names types, which grant no access.
    pub(crate) has_only_types: bool,
}

impl Outline {
    /// Reads a component without validating the code of its functions.
    ///
    /// # Errors
    /// [`PluginRefusedError::NotWebAssembly`], [`PluginRefusedError::NotAComponent`], and [`PluginRefusedError::TooComplex`] for the first limit that it exceeds.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, PluginRefusedError> {
        let not_a_component =
            |cause| PluginRefusedError::NotAComponent(wasmtime::Error::new(cause));
        // The parser's message about this has many lines.
        if !bytes.starts_with(MAGIC_NUMBER) {
            return Err(PluginRefusedError::NotWebAssembly);
        }
        let mut validator = Validator::new();
        let (mut size, mut instances) = (Size::default(), Instances::default());
        let (mut depth, mut imports, mut exports) = (0_u32, Vec::new(), Vec::new());
        for payload in Parser::new(0).parse_all(bytes) {
            let payload = payload.map_err(not_a_component)?;
            size.add(&payload).map_err(not_a_component)?;
            instances.add(&payload).map_err(not_a_component)?;
            size.check()?;
            instances.check()?;
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
            match valid {
                ValidPayload::Func(function, body) => {
                    size.add_function(&function, &body)
                        .map_err(not_a_component)?;
                    size.check()?;
                }
                ValidPayload::End(types) if depth == 0 => {
                    return Ok(Self {
                        imports: imports_of(imports, &types),
                        exports,
                    });
                }
                _ => {}
            }
        }
        let cause = wasmtime::Error::msg("the component is truncated");
        Err(PluginRefusedError::NotAComponent(cause))
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
        exports.all(|export| matches!(export.ty, ComponentEntityType::Type { .. }))
    })
}

#[cfg(test)]
mod tests {
    use super::{size::*, *};

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

    /// Returns a function body that declares `count` local variables.
    fn locals(count: usize) -> Vec<u8> {
        [vec![1], number(count), vec![0x7f, 0x0b]].concat()
    }

    /// Returns a function body that repeats these instructions.
    fn body_of(count: usize, instructions: &[u8]) -> Vec<u8> {
        [vec![0], instructions.repeat(count), vec![0x0b]].concat()
    }

    /// Returns a function body of 100 nested loops around this number of instructions.
    fn nested_loops(instructions: usize) -> Vec<u8> {
        [
            vec![0],
            [3, 0x40].repeat(100),
            vec![1; instructions],
            vec![0x0b; 101],
        ]
        .concat()
    }

    const LOOP: [u8; 3] = [3, 0x40, 0x0b];
    const IF: [u8; 5] = [0x41, 0, 4, 0x40, 0x0b];
    const BLOCK_WITH_RESULT: [u8; 6] = [2, 0x7f, 0x41, 0, 0x0b, 0x1a];
    const INDIRECT_CALL: [u8; 5] = [0x41, 0, 0x11, 0, 0];

    /// Returns a component with a function that has a parameter, `locals` local variables, and a block with `results` results and
    /// `branches` branches to its end.
    fn merging(locals: usize, results: usize, branches: usize) -> Vec<u8> {
        let zeros = [0x41, 0].repeat(results);
        let body = [
            vec![1],
            number(locals),
            vec![0x7f, 0x02, 1],
            zeros,
            [0x20, 0, 0x0d, 0].repeat(branches),
            vec![0x0b],
            [0x1a].repeat(results),
            vec![0x0b],
        ]
        .concat();
        let block = [vec![0x60, 0], items(results, &[0x7f])].concat();
        let types = [vec![2, 0x60, 1, 0x7f, 0], block].concat();
        let module = [
            b"\0asm\x01\0\0\0".to_vec(),
            section(1, &types),
            section(3, &[1, 0]),
            section(10, &[vec![1], number(body.len()), body].concat()),
        ];
        component(&[section(1, &module.concat())])
    }

    /// Returns a section with `count` instances of the component with this index.
    fn instances(count: usize, index: u8) -> Vec<u8> {
        section(5, &items(count, &[0, index, 0]))
    }

    fn limit(number: u64) -> usize {
        usize::try_from(number).unwrap()
    }

    fn refused(component: &[u8]) -> Option<&'static str> {
        match Outline::read(component) {
            Ok(_) => None,
            Err(PluginRefusedError::TooComplex { what, .. }) => Some(what),
            Err(refusal) => panic!("{refusal}: {:?}", std::error::Error::source(&refusal)),
        }
    }

    #[test]
    fn each_limit_is_allowed_and_one_past_it_is_refused() {
        let empty = [0, 0x0b];
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
        // `resource.drop` of a resource that the component defines.
        let canonical = |count| {
            component(&[
                section(7, &items(1, &[0x3f, 0x7f, 0])),
                section(8, &items(count, &[0x03, 0])),
            ])
        };
        let bytes = limit(FUNCTION_BYTES_MAX);
        let declared = 50_000;
        let in_one = locals(declared).len() + declared;
        let many = limit(CODE_BYTES_MAX) / in_one;
        for (component, expected) in [
            (of_functions(limit(FUNCTIONS_MAX), &empty), None),
            (
                of_functions(limit(FUNCTIONS_MAX) + 1, &empty),
                Some("functions"),
            ),
            (
                of_functions(1, &locals(bytes + 1)),
                Some("bytes and local variables in one function"),
            ),
            (of_functions(many, &locals(declared)), None),
            (
                of_functions(many + 1, &locals(declared)),
                Some("bytes of code"),
            ),
            (modules(limit(MODULES_MAX)), None),
            (modules(limit(MODULES_MAX) + 1), Some("modules")),
            (canonical(limit(CANONICAL_FUNCTIONS_MAX)), None),
            (
                canonical(limit(CANONICAL_FUNCTIONS_MAX) + 1),
                Some("canonical functions"),
            ),
            (types(limit(DECLARATIONS_MAX)), None),
            (types(limit(DECLARATIONS_MAX) + 1), Some("declarations")),
            (elements(limit(ELEMENTS_MAX) - 1), None),
            (elements(limit(ELEMENTS_MAX)), Some("elements")),
            (exporting(limit(DECLARATIONS_MAX)), Some("declarations")),
            (instantiating(limit(DECLARATIONS_MAX)), Some("declarations")),
            (declaring(limit(TYPE_BYTES_MAX) / 2 - 4), None),
            (declaring(limit(TYPE_BYTES_MAX) / 2), Some("bytes of types")),
            (recursive(limit(TYPE_BYTES_MAX) / 3), Some("bytes of types")),
        ] {
            assert_eq!(refused(&component), expected);
        }
    }

    #[test]
    fn pairs_in_functions_are_allowed_up_to_each_limit() {
        let label_pairs =
            Some("pairs of branches to the same label, for each value that they may merge");
        let passed_pairs = Some("pairs of values that blocks pass in the same function");
        let merge_pairs = Some("pairs of values that branches to the same label may merge");
        for (component, expected) in [
            (of_functions(1, &body_of(3_162, &LOOP)), None),
            (
                of_functions(1, &body_of(3_163, &LOOP)),
                Some("pairs of loops in the same function"),
            ),
            (of_functions(2, &body_of(2_236, &LOOP)), None),
            (
                of_functions(2, &body_of(2_237, &LOOP)),
                Some("pairs of loops in the same function"),
            ),
            // The loops and their ends count 10,000.
            (of_functions(1, &nested_loops(499_900)), None),
            (
                of_functions(1, &nested_loops(499_901)),
                Some("instructions in loops, each counted once for each loop around it"),
            ),
            (of_functions(1, &body_of(31_622, &IF)), None),
            (
                of_functions(1, &body_of(31_623, &IF)),
                Some("pairs of branches in the same function"),
            ),
            (of_functions(1, &body_of(6_324, &BLOCK_WITH_RESULT)), None),
            (
                of_functions(1, &body_of(6_325, &BLOCK_WITH_RESULT)),
                passed_pairs,
            ),
            (of_functions(2, &body_of(4_472, &INDIRECT_CALL)), None),
            (
                of_functions(2, &body_of(4_473, &INDIRECT_CALL)),
                passed_pairs,
            ),
            // 2 values: 14,142² is below 200,000,000.
            (merging(0, 1, 14_142), None),
            (merging(0, 1, 14_143), label_pairs),
            (merging(1, 0, 14_143), label_pairs),
            // 1,000 values: 141² is below 20,000.
            (merging(0, 999, 141), None),
            (merging(0, 999, 142), merge_pairs),
            (merging(499, 500, 142), merge_pairs),
        ] {
            assert_eq!(refused(&component), expected);
        }
    }

    #[test]
    fn instances_count_with_the_instances_in_them() {
        let nested = |sections: &[Vec<u8>]| section(4, &component(sections));
        let many = limit(INSTANCES_MAX);
        // Each level instantiates the previous one twice: 2, 6, 14, …
        let doubling = |levels: usize| {
            let innermost = nested(&[]);
            (0..levels).fold(innermost, |inner, _| nested(&[inner, instances(2, 0)]))
        };
        // Instantiates a component of the component around it.
        let of_outer = |count: usize| nested(&[section(6, &[1, 4, 2, 1, 0]), instances(count, 0)]);
        // `resource.drop` of a resource that the component defines.
        let canonical = |count: usize| {
            let resource = section(7, &items(1, &[0x3f, 0x7f, 0]));
            nested(&[resource, section(8, &items(count, &[0x03, 0]))])
        };
        let imported = [
            section(7, &[1, 0x41, 0]),
            section(10, &[1, 0, 1, b'a', 4, 0]),
            instances(1, 0),
        ];
        let too_many = Some("instances");
        for (sections, expected) in [
            (vec![nested(&[]), instances(many, 0)], None),
            (vec![nested(&[]), instances(many + 1, 0)], too_many),
            (vec![doubling(8), instances(1, 0)], None),
            (vec![doubling(9), instances(1, 0)], too_many),
            (vec![doubling(40), instances(1, 0)], too_many),
            (
                vec![nested(&[]), of_outer(many / 2 - 1), instances(2, 1)],
                None,
            ),
            (
                vec![nested(&[]), of_outer(many / 2), instances(2, 1)],
                too_many,
            ),
            (vec![canonical(10), instances(100, 0)], None),
            (
                vec![canonical(10), instances(101, 0)],
                Some("canonical functions"),
            ),
            (imported.to_vec(), Some("instances of imported components")),
        ] {
            assert_eq!(refused(&component(&sections)), expected);
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
