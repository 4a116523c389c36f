//! The table of versions in `wit/README.md`.

use std::{fmt::Write, fs};

use keywright_harness::workspace;
use wit_parser::{Resolve, Stability};

use super::{KINDS, VERSIONS, Version};

/// The file with the table, and the lines before and after it.
const PUBLISHED: &str = "wit/README.md";
const BEGIN: &str = "<!-- versions: written by `cargo xtask golden` -->\n";
const END: &str = "<!-- end of versions -->\n";

/// Compares the table in the file with the test's results, or updates it.
pub(super) fn is_the_published_one() {
    let path = workspace().join(PUBLISHED);
    let text = fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(BEGIN).unwrap();
    let (published, after) = rest.split_once(END).unwrap();
    let shown = table();
    if std::env::var_os("KEYWRIGHT_REFRESH_GOLDEN_FILES").is_some() {
        fs::write(&path, format!("{before}{BEGIN}{shown}{END}{after}")).unwrap();
        return;
    }
    assert_eq!(
        published, shown,
        "{PUBLISHED}: run `cargo xtask golden` if it is meant"
    );
}

fn table() -> String {
    let mut table = String::from(
        "\n| WIT | First server | Runs in | Kinds of plugins | What came with it | Shown by |\n|---|---|---|---|---|---|\n",
    );
    for version in &VERSIONS {
        // Writing to a string does not fail.
        let _ = writeln!(
            table,
            "| `{}` | {} | {} | {} | {} | `{}` |",
            version.number,
            version.first_server,
            env!("CARGO_PKG_VERSION"),
            KINDS.map(|kind| format!("`{kind}`")).join(", "),
            additions(version),
            version.guests,
        );
    }
    table.push('\n');
    table
}

/// Returns the interfaces that a version added, and the functions that it added to earlier interfaces.
fn additions(version: &Version) -> String {
    if version.number == VERSIONS[0].number {
        return "everything else".to_owned();
    }
    let resolve = packages(version);
    let mut added = Vec::new();
    for (_, interface) in &resolve.interfaces {
        let Some(package) = interface.package.map(|id| &resolve.packages[id].name) else {
            continue;
        };
        if package.namespace != "keywright" {
            continue;
        }
        assert_eq!(
            package.version.as_ref().unwrap().to_string(),
            version.number
        );
        let name = format!("{}/{}", package.name, interface.name.as_deref().unwrap());
        if came_with(&interface.stability, version) {
            added.push(format!("`{name}`"));
            continue;
        }
        for (function, described) in &interface.functions {
            if came_with(&described.stability, version) {
                added.push(format!("`{name}.{function}`"));
            }
        }
    }
    assert!(!added.is_empty(), "{}", version.number);
    added.join(", ")
}

fn came_with(stability: &Stability, version: &Version) -> bool {
    matches!(stability, Stability::Stable { since, .. } if since.to_string() == version.number)
}

fn packages(version: &Version) -> Resolve {
    let mut resolve = Resolve::default();
    for file in [
        "deps/wasi-random/random.wit",
        "signing/signing.wit",
        "generator/generator.wit",
        "interpolation/interpolation.wit",
    ] {
        let path = workspace().join(version.wit).join(file);
        let text = fs::read_to_string(&path).unwrap();
        resolve.push_str(file, &text).unwrap();
    }
    resolve
}
