//! The packages that are compiled into the program and the plugins, from `cargo metadata`: their bill of materials in `CycloneDX`
//! 1.5 (ECMA-424), and their licences, each text once.

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    fmt::Write,
    fs,
    process::Command,
};

use anyhow::{Context, Result};
use cargo_metadata::{DependencyKind, MetadataCommand, NodeDep, Package, PackageId};
use serde_json::{Value, json};

use super::contents::digest;
use crate::{
    guests::{WASM_TARGET, shipped_packages},
    step::{self, output},
};

/// Programs or plugins, and every package that is compiled into them.
pub(super) struct Graph {
    roots: BTreeSet<PackageId>,
    packages: BTreeMap<PackageId, Package>,
    edges: BTreeMap<PackageId, BTreeSet<PackageId>>,
}

impl Graph {
    pub(super) fn of_program(system: &str) -> Result<Self> {
        Self::of(&[PROGRAM_PACKAGE.to_owned()], system)
    }

    /// Reads the graph of the shipped plugins.
    pub(super) fn of_plugins() -> Result<Self> {
        Self::of(&shipped_packages()?, WASM_TARGET)
    }

    fn of(names: &[String], system: &str) -> Result<Self> {
        let metadata = MetadataCommand::new()
            .current_dir(step::workspace())
            .other_options(["--locked", "--filter-platform", system].map(str::to_owned))
            .exec()
            .context("reading the packages")?;
        let nodes = metadata.resolve.into_iter().flat_map(|all| all.nodes);
        let needed: BTreeMap<_, _> = nodes
            .map(|node| (node.id, compiled_in(node.deps)))
            .collect();
        let is_root = |package: &&Package| {
            !is_foreign(package) && names.iter().any(|name| name == package.name.as_str())
        };
        let roots = metadata.packages.iter().filter(is_root);
        let roots: BTreeSet<_> = roots.map(|package| package.id.clone()).collect();
        let mut waiting: Vec<_> = roots.iter().cloned().collect();
        let mut edges = BTreeMap::new();
        while let Some(id) = waiting.pop() {
            if let Entry::Vacant(edge) = edges.entry(id) {
                let needed = needed.get(edge.key()).cloned().unwrap_or_default();
                waiting.extend(needed.iter().cloned());
                edge.insert(needed);
            }
        }
        let packages = metadata.packages.into_iter();
        let packages = packages.filter(|package| edges.contains_key(&package.id));
        Ok(Self {
            packages: packages
                .map(|package| (package.id.clone(), package))
                .collect(),
            roots,
            edges,
        })
    }

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

    pub(super) fn edges(&self) -> impl Iterator<Item = (&Package, Vec<&Package>)> {
        self.edges.iter().filter_map(|(id, needed)| {
            let needed = needed.iter().filter_map(|id| self.packages.get(id));
            Some((self.packages.get(id)?, needed.collect()))
        })
    }

    pub(super) fn version_of_program(&self) -> Result<String> {
        let mut roots = self.roots();
        let version = roots.next().map(|package| package.version.to_string());
        version.with_context(|| format!("there is no package {PROGRAM_PACKAGE}"))
    }
}

/// Returns the ids of a package's normal dependencies, without build and development dependencies.
fn compiled_in(dependencies: Vec<NodeDep>) -> BTreeSet<PackageId> {
    let is_normal = |dependency: &NodeDep| {
        let mut kinds = dependency.dep_kinds.iter();
        kinds.any(|kind| kind.kind == DependencyKind::Normal)
    };
    let normal = dependencies.into_iter().filter(is_normal);
    normal.map(|dependency| dependency.pkg).collect()
}

/// Returns whether the package comes from a registry, and not from this workspace.
fn is_foreign(package: &Package) -> bool {
    package.source.is_some()
}

/// Returns the unique id of a package in the bill.
fn reference(package: &Package) -> String {
    format!("{}@{}", package.name, package.version)
}

/// Returns the licence of a package as an SPDX expression, if declared. Old manifests write `MIT/Apache-2.0`.
fn licence(package: &Package) -> Option<String> {
    let declared = package.license.as_ref();
    declared.map(|licence| licence.replace('/', " OR "))
}

const PROGRAM_PACKAGE: &str = "keywright-server";

/// Creates the bill of materials of the first graph's program and the other graphs. The time is in seconds since 1970.
pub(super) fn bill_of_materials(graphs: &[&Graph], mtime: u64) -> Result<Vec<u8>> {
    let roots = graphs.iter().flat_map(|graph| graph.roots());
    let mut roots = roots.map(|package| component(package, "application"));
    let program = roots.next();
    let parts = graphs.iter().flat_map(|graph| graph.parts());
    let parts: BTreeMap<_, _> = parts
        .map(|package| (reference(package), component(package, "library")))
        .collect();
    let components: Vec<_> = roots.chain(parts.into_values()).collect();
    let mut bill = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"timestamp": time(mtime)?, "component": program},
        "components": components,
        "dependencies": dependencies(graphs),
    });
    // The serial number depends only on the contents.
    let number = serial_number(&digest(bill.to_string().as_bytes()));
    if let Value::Object(fields) = &mut bill {
        fields.insert("serialNumber".to_owned(), number.into());
    }
    let mut bytes = serde_json::to_vec_pretty(&bill).context("writing the bill of materials")?;
    bytes.push(b'\n');
    Ok(bytes)
}

fn component(package: &Package, kind: &str) -> Value {
    let mut component = json!({
        "type": kind,
        "bom-ref": reference(package),
        "name": package.name,
        "version": package.version.to_string(),
    });
    if let Value::Object(fields) = &mut component {
        if let Some(licence) = licence(package) {
            fields.insert("licenses".to_owned(), json!([{"expression": licence}]));
        }
        if is_foreign(package) {
            // Only the plus sign in names and versions must be escaped in a package URL.
            let version = package.version.to_string().replace('+', "%2B");
            let address = format!("pkg:cargo/{}@{version}", package.name);
            fields.insert("purl".to_owned(), address.into());
        }
    }
    component
}

fn dependencies(graphs: &[&Graph]) -> Value {
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (package, needed) in graphs.iter().flat_map(|graph| graph.edges()) {
        let known = all.entry(reference(package)).or_default();
        known.extend(needed.into_iter().map(reference));
    }
    all.into_iter()
        .map(|(package, needed)| json!({"ref": package, "dependsOn": needed}))
        .collect()
}

/// Creates a UUID of version 8 (RFC 9562, section 5.8) from the first digits of a digest.
fn serial_number(digest: &str) -> String {
    let digits = |from: usize, to: usize| digest.get(from..to).unwrap_or_default();
    format!(
        "urn:uuid:{}-{}-8{}-8{}-{}",
        digits(0, 8),
        digits(8, 12),
        digits(12, 15),
        digits(15, 18),
        digits(18, 30)
    )
}

/// Formats a time according to RFC 3339.
fn time(mtime: u64) -> Result<String> {
    let mut date = Command::new("date");
    let at = format!("@{mtime}");
    date.args(["--utc", "--date", &at, "+%Y-%m-%dT%H:%M:%SZ"]);
    Ok(output(&mut date)?.trim().to_owned())
}

/// Returns the packages from registries with their licences, and the texts of the licences.
pub(super) fn licences(graphs: &[&Graph]) -> Result<Vec<u8>> {
    let packages = graphs.iter().flat_map(|graph| graph.parts());
    let packages: BTreeMap<_, _> = packages
        .filter(|package| is_foreign(package))
        .map(|package| (format!("{} {}", package.name, package.version), package))
        .collect();
    let mut text = INTRODUCTION.to_owned();
    let mut owners: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for (name, package) in &packages {
        let expression = licence(package);
        let expression = expression.as_deref().unwrap_or("see its text below");
        // Writing to a string does not fail.
        let _ = writeln!(text, "{name}: {expression}");
        for found in texts(package)? {
            owners.entry(found).or_default().insert(name);
        }
    }
    let mut found: Vec<_> = owners.into_iter().collect();
    found.sort_by(|(one, its), (other, others)| (its, one).cmp(&(others, other)));
    for (licence, packages) in found {
        let packages: Vec<_> = packages.into_iter().collect();
        let _ = write!(
            text,
            "\n{RULE}\n{}\n{RULE}\n\n{licence}\n",
            packages.join(", ")
        );
    }
    Ok(text.into_bytes())
}

/// Returns the licence files next to a package's manifest, sorted by name.
fn texts(package: &Package) -> Result<Vec<String>> {
    let folder = package.manifest_path.with_file_name("");
    let doing = || format!("reading the licences in {folder}");
    let mut paths = Vec::new();
    for entry in fs::read_dir(&folder).with_context(doing)? {
        let path = entry.with_context(doing)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_licence = LICENCE_PREFIXES
            .iter()
            .any(|prefix| name.to_uppercase().starts_with(prefix));
        if is_licence && path.is_file() {
            paths.push(path);
        }
    }
    paths.sort();
    let bytes = paths.iter().map(|path| fs::read(path).with_context(doing));
    bytes
        .map(|bytes| {
            let text = String::from_utf8_lossy(&bytes?).replace("\r\n", "\n");
            Ok(text.trim_end().to_owned())
        })
        .collect()
}

/// The prefixes of the names of licence files, in upper case.
const LICENCE_PREFIXES: [&str; 5] = ["LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE"];

const RULE: &str =
    "--------------------------------------------------------------------------------";

const INTRODUCTION: &str = "\
The packages in Keywright's program and plugins, with their licences. The texts of the licences follow, as the packages contain them.

";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bill_lists_exactly_the_compiled_packages() {
        let program = Graph::of_program("x86_64-unknown-linux-gnu").unwrap();
        let plugins = Graph::of_plugins().unwrap();
        let bytes = bill_of_materials(&[&program, &plugins], 1_700_000_000).unwrap();
        assert_eq!(
            bytes,
            bill_of_materials(&[&program, &plugins], 1_700_000_000).unwrap()
        );
        let bill: Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(bill["metadata"]["timestamp"], "2023-11-14T22:13:20Z");
        assert_eq!(bill["metadata"]["component"]["name"], "keywright-server");

        let components = bill["components"].as_array().unwrap();
        let names: BTreeSet<_> = components
            .iter()
            .map(|component| component["name"].as_str().unwrap())
            .collect();
        for named in [
            "wasmtime",
            "rustls",
            "keywright-core",
            "keywright-plugin-rsa",
            "ssh-key",
        ] {
            assert!(names.contains(named), "{named}");
        }
        for absent in ["keywright-tests", "proptest", "xtask", "windows-sys"] {
            assert!(!names.contains(absent), "{absent}");
        }

        // Each component is unique and has a licence, and all references exist.
        let mut references = BTreeSet::from(["keywright-server@0.1.0".to_owned()]);
        for component in components {
            let reference = component["bom-ref"].as_str().unwrap();
            assert!(references.insert(reference.to_owned()), "{reference}");
            assert!(
                component["licenses"][0]["expression"].is_string(),
                "{reference}"
            );
        }
        for dependency in bill["dependencies"].as_array().unwrap() {
            let needed = dependency["dependsOn"].as_array().unwrap();
            for reference in needed.iter().chain([&dependency["ref"]]) {
                assert!(
                    references.contains(reference.as_str().unwrap()),
                    "{reference}"
                );
            }
        }
    }

    #[test]
    fn packages_are_listed_and_texts_are_not_repeated() {
        let plugins = Graph::of_plugins().unwrap();
        let text = String::from_utf8(licences(&[&plugins, &plugins]).unwrap()).unwrap();
        let (listed, texts) = text.split_once(RULE).unwrap();
        for package in plugins.parts().filter(|package| is_foreign(package)) {
            let named = format!("{} {}: ", package.name, package.version);
            assert!(listed.contains(&named), "{named}");
        }
        assert!(!listed.contains("keywright-"), "{listed}");
        assert!(texts.contains("Permission is hereby granted"));
    }
}
