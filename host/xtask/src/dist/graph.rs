//! The dependency graph of programs and plugins, from `cargo metadata`.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use serde_json::Value;

use crate::{
    guests::{PLUGIN_PREFIX, SHIPPED},
    step::{self, StepFailed, output},
    wasm_target::WASM_TARGET,
};

/// Programs or plugins, and every package that is compiled into them.
pub(super) struct Graph {
    roots: BTreeSet<String>,
    packages: BTreeMap<String, Package>,
    /// The dependencies of each package, by id.
    edges: BTreeMap<String, BTreeSet<String>>,
}

/// One package.
#[derive(Clone, Debug)]
pub(super) struct Package {
    /// The name.
    pub(super) name: String,
    /// The version.
    pub(super) version: String,
    /// The licence as an SPDX expression, if declared.
    pub(super) licence: Option<String>,
    /// Whether the package comes from a registry, and not from this workspace.
    pub(super) is_foreign: bool,
    /// The folder.
    pub(super) folder: PathBuf,
}

impl Package {
    /// The unique id.
    pub(super) fn reference(&self) -> String {
        format!("{}@{}", self.name, self.version)
    }
}

impl Graph {
    /// Reads the graph of the program, on this system.
    pub(super) fn of_program(system: &str) -> Result<Self, StepFailed> {
        Self::of(&[PROGRAM_PACKAGE.to_owned()], system)
    }

    /// Reads the graph of the shipped plugins.
    pub(super) fn of_plugins() -> Result<Self, StepFailed> {
        Self::of(
            &SHIPPED.map(|name| format!("{PLUGIN_PREFIX}{name}")),
            WASM_TARGET,
        )
    }

    fn of(names: &[String], system: &str) -> Result<Self, StepFailed> {
        let metadata = metadata(system)?;
        let all: BTreeMap<_, _> = items(&metadata, "packages")
            .filter_map(|package| Some((text(package, "id")?, package_of(package)?)))
            .collect();
        let resolve = metadata.get("resolve").unwrap_or(&Value::Null);
        let needed: BTreeMap<_, _> = items(resolve, "nodes")
            .filter_map(|node| Some((text(node, "id")?, compiled_in(node))))
            .collect();
        let roots = all
            .iter()
            .filter(|(_, package)| !package.is_foreign && names.contains(&package.name))
            .map(|(id, _)| id.clone());
        let roots: BTreeSet<_> = roots.collect();

        let mut waiting: Vec<_> = roots.iter().cloned().collect();
        let (mut packages, mut edges) = (BTreeMap::new(), BTreeMap::new());
        while let Some(id) = waiting.pop() {
            if edges.contains_key(&id) {
                continue;
            }
            let needed = needed.get(&id).cloned().unwrap_or_default();
            waiting.extend(needed.iter().cloned());
            packages.extend(all.get(&id).map(|package| (id.clone(), package.clone())));
            edges.insert(id, needed);
        }
        Ok(Self {
            roots,
            packages,
            edges,
        })
    }

    /// Returns the root packages.
    pub(super) fn roots(&self) -> impl Iterator<Item = &Package> {
        self.roots.iter().filter_map(|id| self.packages.get(id))
    }

    /// Returns all packages except the roots.
    pub(super) fn parts(&self) -> impl Iterator<Item = &Package> {
        let parts = self.packages.iter();
        parts
            .filter(|(id, _)| !self.roots.contains(*id))
            .map(|(_, package)| package)
    }

    /// Returns the dependencies of each package.
    pub(super) fn edges(&self) -> impl Iterator<Item = (&Package, Vec<&Package>)> {
        self.edges.iter().filter_map(|(id, needed)| {
            let needed = needed.iter().filter_map(|id| self.packages.get(id));
            Some((self.packages.get(id)?, needed.collect()))
        })
    }

    /// Returns the released version.
    pub(super) fn version_of_program(&self) -> Result<String, StepFailed> {
        let mut roots = self.roots();
        let version = roots.next().map(|package| package.version.clone());
        version.ok_or_else(|| StepFailed(format!("there is no package {PROGRAM_PACKAGE}")))
    }
}

fn package_of(package: &Value) -> Option<Package> {
    let manifest = PathBuf::from(text(package, "manifest_path")?);
    Some(Package {
        name: text(package, "name")?,
        version: text(package, "version")?,
        // Old manifests write `MIT/Apache-2.0`.
        licence: text(package, "license").map(|licence| licence.replace('/', " OR ")),
        is_foreign: package.get("source").is_some_and(Value::is_string),
        folder: manifest.parent()?.to_owned(),
    })
}

/// Returns the ids of a package's normal dependencies, without build and development dependencies.
fn compiled_in(node: &Value) -> BTreeSet<String> {
    let dependencies = items(node, "deps").filter(|dependency| {
        let mut kinds = items(dependency, "dep_kinds");
        kinds.any(|kind| kind.get("kind").is_some_and(Value::is_null))
    });
    dependencies
        .filter_map(|dependency| text(dependency, "pkg"))
        .collect()
}

fn items<'v>(value: &'v Value, name: &str) -> impl Iterator<Item = &'v Value> {
    value
        .get(name)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

fn text(value: &Value, name: &str) -> Option<String> {
    value.get(name)?.as_str().map(str::to_owned)
}

fn metadata(system: &str) -> Result<Value, StepFailed> {
    let mut cargo = step::cargo();
    cargo.args(["metadata", "--locked", "--format-version", "1"]);
    let text = output(cargo.args(["--filter-platform", system]))?;
    serde_json::from_str(&text)
        .map_err(|cause| StepFailed::new("parsing the output of cargo metadata", cause))
}

const PROGRAM_PACKAGE: &str = "keywright-server";
