//! Stubs the WASI imports of a language's runtime that the host does not provide.

use anyhow::Context;
use wac_graph::{CompositionGraph, EncodeOptions, PackageId, plug, types::Package};
use wit_component::{
    ComponentEncoder, DecodedWasm, StringEncoding, dummy_module, embed_component_metadata,
};
use wit_parser::{LiftLowerAbi, ManglingAndAbi, Resolve, WorldId, WorldItem, WorldKey};

use super::NotEncodable;

/// Composes a component with stubs for all its WASI imports except randomness. Every call of a stub traps. A component without
/// such imports is returned unchanged.
///
/// jco's own stubs are not usable, because they also replace `wasi:random/random`.
///
/// # Errors
/// If the bytes are not a component.
pub(crate) fn close(component: Vec<u8>) -> Result<Vec<u8>, NotEncodable> {
    Ok(match stubs(&component)? {
        None => component,
        Some(stubs) => composed(component, stubs)?,
    })
}

/// Renames an import of a component. `from` and `to` are prefixes of the name. A component without that import is returned
/// unchanged.
///
/// # Errors
/// If the bytes are not a component.
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

/// Builds a component that exports stubs, or returns `None` if the component needs none.
fn stubs(component: &[u8]) -> anyhow::Result<Option<Vec<u8>>> {
    let decoded = wit_component::decode(component)?;
    let DecodedWasm::Component(mut resolve, imported_by) = decoded else {
        anyhow::bail!("expected a component, found a WIT package");
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

/// Creates the world of the stubs: it exports the WASI imports of the other world, except randomness.
fn world_of_stubs(resolve: &mut Resolve, imported_by: WorldId) -> anyhow::Result<Option<WorldId>> {
    let importing = resolve
        .worlds
        .get(imported_by)
        .context("the component has no world")?;
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
