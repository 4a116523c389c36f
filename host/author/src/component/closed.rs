//! Closing what a language's runtime imports of WASI, and no plugin is given.

use anyhow::Context;
use wac_graph::{CompositionGraph, EncodeOptions, PackageId, plug, types::Package};
use wit_component::{
    ComponentEncoder, DecodedWasm, StringEncoding, dummy_module, embed_component_metadata,
};
use wit_parser::{LiftLowerAbi, ManglingAndAbi, Resolve, WorldId, WorldItem, WorldKey};

use super::NotEncodable;

/// Composes a component with one that takes the place of everything that it imports of WASI but randomness, and in which every
/// call traps. A component that imports nothing of that kind stays as it is.
///
/// The stubs that jco has of its own take the place of `wasi:random/random`, too, and with it of the host's randomness.
///
/// # Errors
/// When it is no component.
pub(crate) fn close(component: Vec<u8>) -> Result<Vec<u8>, NotEncodable> {
    Ok(match stubs(&component)? {
        None => component,
        Some(stubs) => composed(component, stubs)?,
    })
}

/// Composes a component so that what it imports by one name is imported by another. A component that does not import it stays as
/// it is.
///
/// # Errors
/// When it is no component.
pub(crate) fn rename_import(
    component: Vec<u8>,
    from: &str,
    to: &str,
) -> Result<Vec<u8>, NotEncodable> {
    let rename = || {
        let mut graph = CompositionGraph::new();
        let package = register(&mut graph, "keywright:plugin", component.clone())?;
        let imports = &graph.types()[graph[package].ty()].imports;
        let Some((name, kind)) = imports.iter().find(|(name, _)| name.starts_with(from)) else {
            return Ok(component);
        };
        let (name, kind) = (name.clone(), *kind);
        let instance = graph.instantiate(package);
        let import = graph.import(name.replacen(from, to, 1), kind)?;
        graph.set_instantiation_argument(instance, &name, import)?;
        let exports = graph.types()[graph[package].ty()].exports.keys().cloned();
        for name in exports.collect::<Vec<_>>() {
            let export = graph.alias_instance_export(instance, &name)?;
            graph.export(export, &name)?;
        }
        anyhow::Ok(graph.encode(EncodeOptions::default())?)
    };
    rename().map_err(NotEncodable::from)
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
    let plugged = register(&mut graph, "keywright:stubs", stubs)?;
    let socket = register(&mut graph, "keywright:plugin", component)?;
    plug(&mut graph, vec![plugged], socket)?;
    Ok(graph.encode(EncodeOptions::default())?)
}

fn register(
    graph: &mut CompositionGraph,
    name: &str,
    component: Vec<u8>,
) -> anyhow::Result<PackageId> {
    let package = Package::from_bytes(name, None, component, graph.types_mut())?;
    Ok(graph.register_package(package)?)
}

const WASI: &str = "wasi:";
const RANDOM: &str = "wasi:random/random@";
