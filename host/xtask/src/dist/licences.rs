//! The licences of compiled packages: each text once, with its packages.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    fs,
};

use super::graph::{Graph, Package};
use crate::step::StepFailed;

/// Returns the packages from registries with their licences, and the texts of the licences.
pub(super) fn licences(graphs: &[&Graph]) -> Result<Vec<u8>, StepFailed> {
    let packages = graphs.iter().flat_map(|graph| graph.parts());
    let packages: BTreeMap<_, _> = packages
        .filter(|package| package.is_foreign)
        .map(|package| (format!("{} {}", package.name, package.version), package))
        .collect();
    let mut text = INTRODUCTION.to_owned();
    let mut owners: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for (name, package) in &packages {
        let expression = package.licence.as_deref().unwrap_or("see its text below");
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
fn texts(package: &Package) -> Result<Vec<String>, StepFailed> {
    let folder = &package.folder;
    let doing = format!("reading the licences in {}", folder.display());
    let failed = |cause: std::io::Error| StepFailed::new(&doing, cause);
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_licence = BEGINNINGS
            .iter()
            .any(|word| name.to_uppercase().starts_with(word));
        if is_licence && path.is_file() {
            paths.push(path);
        }
    }
    paths.sort();
    let bytes = paths.iter().map(|path| fs::read(path).map_err(failed));
    bytes
        .map(|bytes| {
            let text = String::from_utf8_lossy(&bytes?).replace("\r\n", "\n");
            Ok(text.trim_end().to_owned())
        })
        .collect()
}

/// The prefixes of licence files.
const BEGINNINGS: [&str; 5] = ["LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE"];

const RULE: &str =
    "--------------------------------------------------------------------------------";

const INTRODUCTION: &str = "\
The packages in Keywright's program and plugins, with their licences. The texts of the licences follow, as the packages contain them.

";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_listed_and_texts_are_not_repeated() {
        let plugins = Graph::of_plugins().unwrap();
        let text = String::from_utf8(licences(&[&plugins, &plugins]).unwrap()).unwrap();
        let (listed, texts) = text.split_once(RULE).unwrap();
        for package in plugins.parts().filter(|package| package.is_foreign) {
            let named = format!("{} {}: ", package.name, package.version);
            assert!(listed.contains(&named), "{named}");
        }
        assert!(!listed.contains("keywright-"), "{listed}");
        assert!(texts.contains("Permission is hereby granted"));
    }
}
