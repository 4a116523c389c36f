//! The imports of the shipped plugins, as golden files: additional imports must be visible in a review.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test ends when what it needs is not there"
)]

use std::{collections::BTreeSet, fs};

use keywright_harness::{component, workspace};
use wit_component::{DecodedWasm, decode};

const SHIPPED: [&str; 9] = [
    "certificate",
    "ecdsa",
    "ed25519",
    "interpolation",
    "passphrase",
    "password",
    "rsa",
    "ssh",
    "user",
];

#[test]
fn imports_of_shipped_plugins_match_the_golden_files() {
    let refreshes = std::env::var_os("KEYWRIGHT_REFRESH_GOLDEN_FILES").is_some();
    let folder = workspace().join("tests/golden/imports");
    if refreshes {
        // Removes the files of removed plugins, too.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
    }
    for plugin in SHIPPED {
        let golden = folder.join(format!("{plugin}.txt"));
        let found = imports(plugin);
        if refreshes {
            fs::write(&golden, &found).unwrap();
        }
        let expected = fs::read_to_string(&golden)
            .unwrap_or_else(|cause| panic!("{}: {cause}", golden.display()));
        assert_eq!(
            found, expected,
            "{plugin}: run `cargo xtask golden` if it is meant"
        );
    }
    let files: BTreeSet<String> = fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(files, SHIPPED.map(|plugin| format!("{plugin}.txt")).into());
}

#[test]
fn shipped_plugins_contain_no_build_paths() {
    let home = std::env::var("HOME").unwrap();
    let cargo_home = std::env::var("CARGO_HOME").unwrap_or(format!("{home}/.cargo"));
    let workspace = workspace().display().to_string();
    for plugin in SHIPPED {
        let bytes = fs::read(component(plugin)).unwrap();
        for path in [&cargo_home, &workspace] {
            let mut windows = bytes.windows(path.len());
            let is_there = windows.any(|part| part == path.as_bytes());
            assert!(!is_there, "{plugin} holds {path}");
        }
    }
}

/// Returns the interfaces that a component imports, one per line, in alphabetical order.
fn imports(plugin: &str) -> String {
    let bytes = fs::read(component(plugin)).unwrap();
    let Ok(DecodedWasm::Component(resolve, world)) = decode(&bytes) else {
        panic!("{plugin} is no component");
    };
    let imports = resolve.worlds[world].imports.keys();
    let names: BTreeSet<String> = imports.map(|key| resolve.name_world_key(key)).collect();
    names.into_iter().map(|name| name + "\n").collect()
}
