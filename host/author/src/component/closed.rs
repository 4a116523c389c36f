//! Closing what a language's runtime imports of WASI, and no plugin is given.

use anyhow::Context;
use wac_graph::{CompositionGraph, EncodeOptions, plug, types::Package};
use wit_component::{
    ComponentEncoder, DecodedWasm, StringEncoding, dummy_module, embed_component_metadata,
};
use wit_parser::{LiftLowerAbi, ManglingAndAbi, Resolve, WorldId, WorldItem, WorldKey};

use super::NotEncodable;

/// Composes a component with one that takes the place of everything that it imports of WASI but randomness, and in which every
/// call traps. A component that imports nothing of that kind stays as it is.
///
/// The stubs that the tools of interpreted languages have of their own take the place of `wasi:random/random`, too, and with it
/// of the host's randomness.
///
/// # Errors
/// When it is no component.
pub(crate) fn close(component: Vec<u8>) -> Result<Vec<u8>, NotEncodable> {
    Ok(match stubs(&component)? {
        None => component,
        Some(stubs) => composed(component, stubs)?,
    })
}

/// A component that exports what the other one is not to import.
fn stubs(component: &[u8]) -> anyhow::Result<Option<Vec<u8>>> {
    let decoded = wit_component::decode(component)?;
    let DecodedWasm::Component(mut resolve, imported_by) = decoded else {
        anyhow::bail!("it is a WIT package, not a component");
    };
    let Some(world) = world_of_stubs(&mut resolve, imported_by)? else {
        return Ok(None);
    };
    let abi = ManglingAndAbi::Legacy(LiftLowerAbi::Sync);
    let mut module = dummy_module(&resolve, world, abi);
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8)?;
    let stubs = ComponentEncoder::default().module(&module)?.encode()?;
    Ok(Some(stubs))
}

/// The world that exports what the other one is not to import.
fn world_of_stubs(resolve: &mut Resolve, imported_by: WorldId) -> anyhow::Result<Option<WorldId>> {
    let importing = resolve.worlds.get(imported_by).context("it has no world")?;
    let is_closed = |key: &WorldKey| {
        let name = resolve.name_world_key(key);
        name.starts_with(WASI) && !name.starts_with(RANDOM)
    };
    let closed: Vec<(WorldKey, WorldItem)> = importing
        .imports
        .iter()
        .filter(|(key, _)| is_closed(key))
        .map(|(key, item)| (key.clone(), item.clone()))
        .collect();
    if closed.is_empty() {
        return Ok(None);
    }
    let mut world = importing.clone();
    world.imports.clear();
    world.exports = closed.into_iter().collect();
    Ok(Some(resolve.worlds.alloc(world)))
}

fn composed(component: Vec<u8>, stubs: Vec<u8>) -> anyhow::Result<Vec<u8>> {
    let mut graph = CompositionGraph::new();
    let mut register = |name, bytes: Vec<u8>| {
        let package = Package::from_bytes(name, None, bytes, graph.types_mut())?;
        anyhow::Ok(graph.register_package(package)?)
    };
    let plugged = register("keywright:stubs", stubs)?;
    let socket = register("keywright:plugin", component)?;
    plug(&mut graph, vec![plugged], socket)?;
    Ok(graph.encode(EncodeOptions::default())?)
}

const WASI: &str = "wasi:";
const RANDOM: &str = "wasi:random/random@";
