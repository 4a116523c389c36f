//! Reads the world of a project, creates components from core modules, and stubs the imports of language runtimes.

use std::{fs, io, path::Path};

use anyhow::Context;
use wac_graph::{CompositionGraph, EncodeOptions, PackageId, plug, types::Package};
use wit_component::{
    ComponentEncoder, DecodedWasm, StringEncoding, dummy_module, embed_component_metadata,
};
use wit_parser::{LiftLowerAbi, ManglingAndAbi, Resolve, WorldId, WorldItem, WorldKey};

use crate::error::ProjectError;

pub(crate) const WIT_FOLDER: &str = "wit";
/// The levels of folders in a folder with WIT: `deps`, and its packages.
pub(crate) const WIT_LEVELS: u8 = 2;
/// A project's own world. A project without one uses [`GENERATOR_WORLD`].
const OWN_WORLD: &str = "plugin";
const GENERATOR_WORLD: &str = "generator-plugin";

/// A world, with everything that it refers to.
pub(crate) struct World {
    pub(crate) resolve: Resolve,
    pub(crate) id: WorldId,
}

impl World {
    pub(crate) fn of_project(project: &Path) -> Result<Self, ProjectError> {
        let folder = project.join(WIT_FOLDER);
        if !folder.is_dir() {
            return Err(ProjectError::new(format!(
                "{} does not exist: copy this folder, which contains the WIT for plugins, from a project created by \
                 `keywright plugin new`",
                folder.display()
            )));
        }
        check_files(&folder, WIT_LEVELS)
            .map_err(|cause| ProjectError::file("read the WIT in", &folder, cause))?;
        let mut resolve = Resolve::default();
        let (package, _) = resolve.push_dir(&folder).map_err(|cause| {
            let folder = folder.display();
            ProjectError::new(format!("could not parse the WIT in {folder}: {cause:#}"))
        })?;
        let worlds = resolve.packages.get(package).map(|package| &package.worlds);
        let of_name = |name| worlds.and_then(|worlds| worlds.get(name).copied());
        let id = of_name(OWN_WORLD)
            .or_else(|| of_name(GENERATOR_WORLD))
            .ok_or_else(|| {
                ProjectError::new(format!(
                    "the package in {} has neither a world `plugin` nor a world `generator-plugin`",
                    folder.display()
                ))
            })?;
        Ok(Self { resolve, id })
    }

    pub(crate) fn name(&self) -> &str {
        self.resolve
            .worlds
            .get(self.id)
            .map_or("", |world| world.name.as_str())
    }
}

/// Checks that a folder only contains regular files and folders: a downloaded project can contain a link to an endless device, or a
/// named pipe without a writer. A link to a file with another extension is refused, because the parser's errors contain lines of the
/// file.
fn check_files(folder: &Path, levels: u8) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            if levels > 0 {
                check_files(&path, levels - 1)?;
            }
        } else if !path.is_file() || path.canonicalize()?.extension() != path.extension() {
            let path = path.display();
            let what = format!("{path} is not a regular file, or links to a file of another kind");
            return Err(io::Error::other(what));
        }
    }
    Ok(())
}

/// Creates a component from a core module that contains its WIT, as wit-bindgen generates it.
///
/// An adapter inside the component implements the WASI preview 1 imports of the language's runtime. It imports only the host's
/// randomness and, if the module's world imports `notes`, that interface for lines of output. There are no arguments, environment or
/// files. Reading the time and waiting trap, after a note that names the WASI function.
///
/// # Errors
/// If the bytes are not a core module, or the module has other imports.
pub fn component_of_module(module: &[u8]) -> Result<Vec<u8>, ProjectError> {
    encode(module, &[CLOCK, WAITING])
}

/// Creates a component from a core module. `trapping` lists the calls that trap, each with its note.
fn encode(module: &[u8], trapping: &[(&str, &str)]) -> Result<Vec<u8>, ProjectError> {
    let encode = || {
        let adapter = adapter(notes_of(module)?.as_deref(), trapping)?;
        ComponentEncoder::default()
            .validate(true)
            .module(module)?
            .adapter(ADAPTER_NAME, &adapter)?
            .encode()
    };
    encode().map_err(ProjectError::from)
}

/// Creates a component for this world from a core module that Go compiled. The module contains no WIT.
///
/// Reading the time does not trap, because Go's garbage collector reads it.
pub(crate) fn component_of_go_module(
    mut module: Vec<u8>,
    world: &World,
) -> Result<Vec<u8>, ProjectError> {
    embed_component_metadata(&mut module, &world.resolve, world.id, StringEncoding::UTF8)?;
    encode(&module, &[WAITING])
}

/// Returns the name of the interface for notes that a module imports, if there is one: `keywright:generator/notes@0.2.0`.
fn notes_of(module: &[u8]) -> anyhow::Result<Option<String>> {
    let (_, bindings) = wit_component::metadata::decode(module)?;
    let world = bindings.resolve.worlds.get(bindings.world);
    let imports = world.into_iter().flat_map(|world| world.imports.keys());
    let mut names = imports.map(|key| bindings.resolve.name_world_key(key));
    Ok(names.find(|name| name.starts_with(NOTES)))
}

/// Builds the adapter: a core module with the WIT of its imports. `notes` is the interface for lines of output.
fn adapter(notes: Option<&str>, trapping: &[(&str, &str)]) -> anyhow::Result<Vec<u8>> {
    let (note, import) = match notes {
        Some(name) => (
            format!("(import \"{name}\" \"note\" (func $note (param i32 i32)))"),
            format!("import {name};"),
        ),
        None => ("(func $note (param i32 i32))".to_owned(), String::new()),
    };
    let mut text = ADAPTER_TEXT.replace(NOTE_PLACEHOLDER, &note);
    for (call, reason) in trapping {
        text = text.replace(&format!("(; TRAP {call} ;)"), &refusal(call, reason));
    }
    let mut module = wat::parse_str(text)?;
    let mut resolve = Resolve::default();
    resolve.push_source("random.wit", RANDOM_WIT)?;
    if let Some(version) = notes.and_then(|name| name.strip_prefix(NOTES)) {
        let interface = "interface notes { note: func(text: string); }";
        let text = format!("package keywright:generator@{version};\n{interface}");
        resolve.push_source("notes.wit", &text)?;
    }
    let world = ADAPTER_WORLD.replace(NOTE_PLACEHOLDER, &import);
    let package = resolve.push_source("adapter.wit", &world)?;
    let world = resolve.select_world(&[package], None)?;
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8)?;
    Ok(module)
}

/// Returns instructions that print a note and trap.
fn refusal(call: &str, reason: &str) -> String {
    let text = format!("{call}: {reason}");
    let spelled = text.as_bytes().chunks(8).map(|characters| {
        let mut word = [0; 8];
        word.iter_mut()
            .zip(characters)
            .for_each(|(to, from)| *to = *from);
        let (word, count) = (i64::from_le_bytes(word), characters.len());
        format!("(call $spell (i64.const {word}) (i32.const {count}))")
    });
    let spelled: String = spelled.collect();
    format!("(call $end_line) {spelled} (call $end_line) (unreachable)")
}

/// Composes a component with stubs for all its WASI imports except randomness. Every call of a stub traps. A component without
/// such imports is returned unchanged.
///
/// jco's own stubs are not usable, because they also replace `wasi:random/random`.
pub(crate) fn stub_wasi_imports(component: Vec<u8>) -> Result<Vec<u8>, ProjectError> {
    Ok(match stubs(&component)? {
        None => component,
        Some(stubs) => compose(component, stubs)?,
    })
}

/// Renames an import of a component. `from` and `to` are prefixes of the name. A component without that import is returned
/// unchanged.
pub(crate) fn rename_import(
    component: Vec<u8>,
    from: &str,
    to: &str,
) -> Result<Vec<u8>, ProjectError> {
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
    rename().map_err(ProjectError::from)
}

/// Builds a component that exports stubs for WASI imports, or returns `None` if the component has no imports to stub.
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

/// Creates the world of the stubs. It exports all WASI imports of `imported_by`, except randomness.
fn world_of_stubs(resolve: &mut Resolve, imported_by: WorldId) -> anyhow::Result<Option<WorldId>> {
    let importing = resolve
        .worlds
        .get(imported_by)
        .context("the component has no world")?;
    let is_stubbed = |key: &WorldKey| {
        let name = resolve.name_world_key(key);
        name.starts_with(WASI) && !name.starts_with(WASI_RANDOM)
    };
    let stubbed: Vec<(WorldKey, WorldItem)> = importing
        .imports
        .iter()
        .filter(|(key, _)| is_stubbed(key))
        .map(|(key, item)| (key.clone(), item.clone()))
        .collect();
    if stubbed.is_empty() {
        return Ok(None);
    }
    let mut world = importing.clone();
    world.imports.clear();
    world.exports = stubbed.into_iter().collect();
    Ok(Some(resolve.worlds.alloc(world)))
}

fn compose(component: Vec<u8>, stubs: Vec<u8>) -> anyhow::Result<Vec<u8>> {
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

/// The name of the adapted module.
const ADAPTER_NAME: &str = "wasi_snapshot_preview1";

const ADAPTER_TEXT: &str = include_str!("preview1.wat");
const RANDOM_WIT: &str = include_str!("../../../../wit/deps/wasi-random/random.wit");
const ADAPTER_WORLD: &str = "
    package keywright:adapter;

    world adapter {
        import wasi:random/random@0.2.0;
        (; NOTE ;)
    }
";
/// The placeholder for the import of notes, in the adapter's text and in its world.
const NOTE_PLACEHOLDER: &str = "(; NOTE ;)";

/// Calls of WASI preview 1 that trap, each with its note. Other calls fail with an error or return nothing.
const CLOCK: (&str, &str) = (
    "clock_time_get",
    "a plugin has no clock; use the time of the call (now-seconds)",
);
const WAITING: (&str, &str) = ("poll_oneoff", "a plugin can't wait");

const NOTES: &str = "keywright:generator/notes@";
const WASI: &str = "wasi:";
const WASI_RANDOM: &str = "wasi:random/random@";

#[cfg(test)]
mod tests {
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
            let component = component_of_go_module(module(wanted), &world).unwrap();
            assert_eq!(imports(&component), imported, "{wanted:?}");
        }
        for unknown in [r#""unheard_of" (func)"#, r#""random_get" (func)"#] {
            assert!(component_of_go_module(module(&[unknown]), &world).is_err());
        }
    }

    #[test]
    fn output_is_printed_as_notes_if_the_world_imports_them() {
        let text = |imported: &str| {
            format!(
                "package a:b;
                 world w {{ {imported} export run: func(); }}
                 package keywright:generator@0.2.7 {{ interface notes {{ note: func(text: string); }} }}"
            )
        };
        let write = r#""fd_write" (func (param i32 i32 i32 i32) (result i32))"#;
        let read = r#""fd_read" (func (param i32 i32 i32 i32) (result i32))"#;
        let notes = "keywright:generator/notes@0.2.7";
        let importing = format!("import {notes};");
        for (imported, wanted, expected) in [
            (importing.as_str(), write, &[notes][..]),
            (&importing, read, &[]),
            ("", write, &[]),
        ] {
            let world = world(&text(imported));
            let component = component_of_go_module(module(&[wanted]), &world).unwrap();
            assert_eq!(imports(&component), expected, "{wanted}");
        }
    }

    #[test]
    fn stubbing_leaves_randomness_as_the_only_wasi_import() {
        let importing = world(
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
        let module = dummy_module(&importing.resolve, importing.id, abi);
        let component = component_of_go_module(module, &importing).unwrap();
        assert_eq!(imports(&component).len(), 6);
        let stubbed = stub_wasi_imports(component).unwrap();
        assert_eq!(
            imports(&stubbed),
            ["wasi:random/random@0.2.12", "a:b/other"]
        );
        // No import is left to stub.
        assert_eq!(stub_wasi_imports(stubbed.clone()).unwrap(), stubbed);
        assert!(stub_wasi_imports(b"\0asm".to_vec()).is_err());

        let renamed = rename_import(stubbed, "a:b/other", "b:c/another").unwrap();
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
            .map(|function| format!("(import \"{ADAPTER_NAME}\" {function})"));
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
