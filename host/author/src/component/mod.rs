//! Components: made of core modules, and closed where a language's runtime left them open.

mod adapter;
mod closed;

use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};

pub(crate) use closed::{close, rename_import};

use crate::wit::World;

/// Makes a component of a core module that holds its own WIT, as wit-bindgen leaves it.
///
/// What the module wants of WASI's first preview, for the sake of its language's runtime, is answered inside the component,
/// with nothing but the host's randomness behind it: there are no arguments, no environment, no files, and no time; what is
/// written is thrown away.
///
/// # Errors
/// When the module is none, or imports something else.
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

/// The same of a core module that holds no WIT, and was built for this world.
pub(crate) fn component_of_bare_module(
    mut module: Vec<u8>,
    world: &World,
) -> Result<Vec<u8>, NotEncodable> {
    embed_component_metadata(&mut module, &world.resolve, world.id, StringEncoding::UTF8)?;
    component_of_module(&module)
}

/// No component can be made of this.
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
    fn what_a_runtime_wants_is_answered_inside_with_the_randomness_of_the_host_alone() {
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
    fn what_stays_open_of_wasi_is_randomness_alone() {
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

    /// A core module that imports these functions of the first preview.
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
            panic!("it is no component");
        };
        let imports = resolve.worlds[world].imports.keys();
        imports.map(|key| resolve.name_world_key(key)).collect()
    }
}
