//! Creates components from core modules, and stubs the imports of language runtimes.

mod adapter;
mod closed;

use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};

pub(crate) use closed::{close, rename_import};

use crate::wit::World;

/// Creates a component from a core module that contains its WIT, as wit-bindgen generates it.
///
/// An adapter inside the component implements the WASI preview 1 imports of the language's runtime. It imports only the host's
/// randomness: there are no arguments, environment, files or clocks, and output is discarded.
///
/// # Errors
/// If the bytes are not a core module, or the module has other imports.
pub fn component_of_module(module: &[u8]) -> Result<Vec<u8>, NotEncodable> {
    let encode = || {
        let adapter = adapter::module()?;
        ComponentEncoder::default()
            .validate(true)
            .module(module)?
            .adapter(adapter::NAME, &adapter)?
            .encode()
    };
    encode().map_err(NotEncodable::from)
}

/// Creates a component from a core module without WIT that was built for this world.
pub(crate) fn component_of_bare_module(
    mut module: Vec<u8>,
    world: &World,
) -> Result<Vec<u8>, NotEncodable> {
    embed_component_metadata(&mut module, &world.resolve, world.id, StringEncoding::UTF8)?;
    component_of_module(&module)
}

/// Why no component can be created from a module.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NotEncodable(String);

impl From<anyhow::Error> for NotEncodable {
    fn from(cause: anyhow::Error) -> Self {
        Self(format!("{cause:#}"))
    }
}

#[cfg(test)]
mod tests {
    use wit_component::{DecodedWasm, dummy_module};
    use wit_parser::{LiftLowerAbi, ManglingAndAbi, Resolve};

    use super::*;

    #[test]
    fn adapter_imports_only_randomness_of_the_host() {
        let world = world("package a:b; world w { export run: func(); }");
        let wanted = [
            r#""random_get" (func (param i32 i32) (result i32))"#,
            r#""clock_time_get" (func (param i32 i64 i32) (result i32))"#,
            r#""args_sizes_get" (func (param i32 i32) (result i32))"#,
            r#""environ_get" (func (param i32 i32) (result i32))"#,
            r#""fd_write" (func (param i32 i32 i32 i32) (result i32))"#,
            r#""path_open" (func (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32))"#,
            r#""poll_oneoff" (func (param i32 i32 i32 i32) (result i32))"#,
            r#""proc_exit" (func (param i32))"#,
            r#""adapter_monotonic_clock_set_paused" (func (param i32))"#,
        ];
        for (wanted, imported) in [
            (&wanted[..], &["wasi:random/random@0.2.0"][..]),
            (&wanted[1..], &[]),
            (&[], &[]),
        ] {
            let component = component_of_bare_module(module(wanted), &world).unwrap();
            assert_eq!(imports(&component), imported, "{wanted:?}");
        }
        for unknown in [r#""unheard_of" (func)"#, r#""random_get" (func)"#] {
            assert!(component_of_bare_module(module(&[unknown]), &world).is_err());
        }
    }

    #[test]
    fn closing_leaves_randomness_as_the_only_wasi_import() {
        let open = world(
            "package a:b;
             world w {
                 import wasi:cli/environment@0.2.12;
                 import wasi:io/streams@0.2.12;
                 import wasi:random/insecure-seed@0.2.12;
                 import wasi:random/random@0.2.12;
                 import other;
                 export run: func();
             }
             interface other { call: func(); }
             package wasi:cli@0.2.12 {
                 interface environment { get-arguments: func() -> list<string>; }
             }
             package wasi:io@0.2.12 {
                 interface error { resource error; }
                 interface streams {
                     use error.{error};
                     resource output-stream { write: func(bytes: list<u8>) -> result<_, error>; }
                 }
             }
             package wasi:random@0.2.12 {
                 interface insecure-seed { insecure-seed: func() -> tuple<u64, u64>; }
                 interface random { get-random-u64: func() -> u64; }
             }",
        );
        let abi = ManglingAndAbi::Legacy(LiftLowerAbi::Sync);
        let module = dummy_module(&open.resolve, open.id, abi);
        let component = component_of_bare_module(module, &open).unwrap();
        assert_eq!(imports(&component).len(), 6);
        let closed = close(component).unwrap();
        assert_eq!(imports(&closed), ["wasi:random/random@0.2.12", "a:b/other"]);
        // There is nothing left to close.
        assert_eq!(close(closed.clone()).unwrap(), closed);
        assert!(close(b"\0asm".to_vec()).is_err());

        let renamed = rename_import(closed, "a:b/other", "b:c/another").unwrap();
        assert_eq!(
            imports(&renamed),
            ["wasi:random/random@0.2.12", "b:c/another"]
        );
        let unchanged = rename_import(renamed.clone(), "a:b/other", "b:c/another");
        assert_eq!(unchanged.unwrap(), renamed);
    }

    fn world(text: &str) -> World {
        let mut resolve = Resolve::default();
        let package = resolve.push_source("world.wit", text).unwrap();
        let id = resolve.select_world(&[package], None).unwrap();
        World { resolve, id }
    }

    /// Builds a core module that imports these functions of WASI preview 1.
    fn module(wanted: &[&str]) -> Vec<u8> {
        let imported = wanted
            .iter()
            .map(|function| format!("(import \"{}\" {function})", adapter::NAME));
        let imported: String = imported.collect();
        let text =
            format!("(module {imported} (memory (export \"memory\") 1) (func (export \"run\")))");
        wat::parse_str(text).unwrap()
    }

    fn imports(component: &[u8]) -> Vec<String> {
        let DecodedWasm::Component(resolve, world) = wit_component::decode(component).unwrap()
        else {
            panic!("expected a component");
        };
        let imports = resolve.worlds[world].imports.keys();
        imports.map(|key| resolve.name_world_key(key)).collect()
    }
}
