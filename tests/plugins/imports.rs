//! What each shipped plugin imports, frozen: a plugin that reaches for more must be seen in a review.

use std::{collections::BTreeSet, fs};

use keywright_harness::{component, workspace};
use wit_component::{DecodedWasm, decode};

const SHIPPED: [&str; 6] = [
    "certificate",
    "interpolation",
    "password",
    "rsa",
    "ssh",
    "user",
];

#[test]
fn the_imports_of_shipped_plugins_are_those_of_the_golden_files() {
    let refreshes = std::env::var_os("KEYWRIGHT_REFRESH_GOLDEN_FILES").is_some();
    let folder = workspace().join("tests/golden/imports");
    for plugin in SHIPPED {
        let golden = folder.join(format!("{plugin}.txt"));
        let found = imports(plugin);
        if refreshes {
            fs::create_dir_all(&folder).unwrap();
            fs::write(&golden, &found).unwrap();
        }
        let expected = fs::read_to_string(&golden)
            .unwrap_or_else(|cause| panic!("{}: {cause}", golden.display()));
        assert_eq!(
            found, expected,
            "{plugin}: run `cargo xtask refresh-golden-files` if it is meant"
        );
    }
}

#[test]
fn no_golden_file_is_left_of_a_plugin_that_is_gone() {
    let folder = workspace().join("tests/golden/imports");
    let files: BTreeSet<String> = fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(files, SHIPPED.map(|plugin| format!("{plugin}.txt")).into());
}

/// The interfaces that a component imports, one a line, in alphabetical order.
fn imports(plugin: &str) -> String {
    let bytes = fs::read(component(plugin)).unwrap();
    let Ok(DecodedWasm::Component(resolve, world)) = decode(&bytes) else {
        panic!("{plugin} is no component");
    };
    let imports = resolve.worlds[world].imports.keys();
    let names: BTreeSet<String> = imports.map(|key| resolve.name_world_key(key)).collect();
    names.into_iter().map(|name| name + "\n").collect()
}
