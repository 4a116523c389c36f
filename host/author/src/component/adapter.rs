//! The adapter from WASI preview 1, for language runtimes that import it.

use wit_component::{StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

/// The name of the adapted module.
pub(super) const NAME: &str = "wasi_snapshot_preview1";

/// Builds the adapter: a core module with the WIT of its imports.
pub(super) fn module() -> anyhow::Result<Vec<u8>> {
    let mut module = wat::parse_str(TEXT)?;
    let mut resolve = Resolve::default();
    resolve.push_source("random.wit", RANDOM)?;
    let package = resolve.push_source("adapter.wit", WORLD)?;
    let world = resolve.select_world(&[package], None)?;
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8)?;
    Ok(module)
}

const TEXT: &str = include_str!("preview1.wat");
const RANDOM: &str = include_str!("../../../../wit/deps/wasi-random/random.wit");
const WORLD: &str = "
    package keywright:adapter;

    world adapter {
        import wasi:random/random@0.2.0;
    }
";
