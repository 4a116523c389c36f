//! The bill of materials of the program and the plugins, in `CycloneDX` 1.5 (ECMA-424).

use std::{
    collections::{BTreeMap, BTreeSet},
    process::Command,
};

use serde_json::{Value, json};

use super::{
    archive::digest,
    graph::{Graph, Package},
};
use crate::step::{StepFailed, output};

/// Creates the bill of materials of the first graph's program and the other graphs. The time is in seconds since 1970.
pub(super) fn bill(graphs: &[&Graph], mtime: u64) -> Result<Vec<u8>, StepFailed> {
    let roots = graphs.iter().flat_map(|graph| graph.roots());
    let mut roots = roots.map(|package| component(package, "application"));
    let program = roots.next();
    let parts = graphs.iter().flat_map(|graph| graph.parts());
    let parts: BTreeMap<_, _> = parts
        .map(|package| (package.reference(), component(package, "library")))
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
    if let Value::Object(members) = &mut bill {
        members.insert("serialNumber".to_owned(), number.into());
    }
    let mut bytes = serde_json::to_vec_pretty(&bill)
        .map_err(|cause| StepFailed::new("writing the bill of materials", cause))?;
    bytes.push(b'\n');
    Ok(bytes)
}

fn component(package: &Package, kind: &str) -> Value {
    let mut component = json!({
        "type": kind,
        "bom-ref": package.reference(),
        "name": package.name,
        "version": package.version,
    });
    if let Value::Object(members) = &mut component {
        if let Some(licence) = &package.licence {
            members.insert("licenses".to_owned(), json!([{"expression": licence}]));
        }
        if package.is_foreign {
            // Only the plus sign in names and versions must be escaped in a package URL.
            let version = package.version.replace('+', "%2B");
            let address = format!("pkg:cargo/{}@{version}", package.name);
            members.insert("purl".to_owned(), address.into());
        }
    }
    component
}

/// Returns the dependencies of each package, merged from all graphs.
fn dependencies(graphs: &[&Graph]) -> Value {
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (package, needed) in graphs.iter().flat_map(|graph| graph.edges()) {
        let known = all.entry(package.reference()).or_default();
        known.extend(needed.into_iter().map(Package::reference));
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
fn time(mtime: u64) -> Result<String, StepFailed> {
    let mut date = Command::new("date");
    let at = format!("@{mtime}");
    date.args(["--utc", "--date", &at, "+%Y-%m-%dT%H:%M:%SZ"]);
    Ok(output(&mut date)?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bill_lists_exactly_the_compiled_packages() {
        let program = Graph::of_program("x86_64-unknown-linux-gnu").unwrap();
        let plugins = Graph::of_plugins().unwrap();
        let bytes = bill(&[&program, &plugins], 1_700_000_000).unwrap();
        assert_eq!(bytes, bill(&[&program, &plugins], 1_700_000_000).unwrap());
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
}
