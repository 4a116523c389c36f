//! Components: the imports of shipped components, generators whose randomness is constant, and the test of a release's components.

use std::{collections::BTreeSet, fs};

use keywright_harness::{
    Options, Server, Text, component, component_by_toolchain, run_program, shipped_plugins,
    workspace,
};
use serde_json::{Value, json};
use wit_component::{DecodedWasm, decode};

#[test]
fn imports_of_shipped_plugins_match_the_golden_files() {
    let refreshes = std::env::var_os("KEYWRIGHT_REFRESH_GOLDEN_FILES").is_some();
    let folder = workspace().join("tests/golden/imports");
    if refreshes {
        // Removes the files of removed plugins, too.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
    }
    for plugin in shipped_plugins() {
        let golden = folder.join(format!("{plugin}.txt"));
        let found = imports(&plugin);
        if refreshes {
            fs::write(&golden, &found).unwrap();
        }
        let expected = fs::read_to_string(&golden)
            .unwrap_or_else(|cause| panic!("{}: {cause}", golden.display()));
        assert_eq!(
            found, expected,
            "{plugin}: run `cargo xtask golden` if the change is intended"
        );
    }
    let files: BTreeSet<String> = fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    let shipped = shipped_plugins().into_iter();
    assert_eq!(
        files,
        shipped.map(|plugin| format!("{plugin}.txt")).collect()
    );
}

#[test]
fn shipped_plugins_contain_no_build_paths() {
    let home = std::env::var("HOME").unwrap();
    let cargo_home = std::env::var("CARGO_HOME").unwrap_or(format!("{home}/.cargo"));
    let workspace = workspace().display().to_string();
    for plugin in shipped_plugins() {
        let bytes = fs::read(component(&plugin)).unwrap();
        for path in [&cargo_home, &workspace] {
            let mut windows = bytes.windows(path.len());
            let contains_path = windows.any(|part| part == path.as_bytes());
            assert!(!contains_path, "{plugin} contains {path}");
        }
    }
}

/// The memory that the host resets without changing its protection (`MEMORY_BYTES_RESET` in `host/runtime/src/engine.rs`).
const MEMORY_BYTES_RESET: usize = 256 * 1024;

#[tokio::test]
async fn short_calls_of_shipped_plugins_fit_in_the_reset_memory() {
    let section = |name: &str| {
        format!(
            "component = \"{}\"\nlimits = {{ memory_bytes_max = {MEMORY_BYTES_RESET} }}\n",
            component(name).display()
        )
    };
    let password = section("password") + "grants = [\"random\"]";
    let options = Options::default()
        .generator("password", &password)
        .without_resolver()
        .extra(&format!("[resolver]\n{}", section("interpolation")));
    let server = Server::start_with(&options).await;
    let generated = json!({"name": "/a", "type": "password"});
    server.post("/api/v1/data", generated).await.expect(200);
    let stored = json!({"name": "/b", "type": "json", "value": {"c": 1}});
    server.put("/api/v1/data", stored).await.expect(200);
    let document = |credentials: Value| json!({"d": [{"credentials": credentials}]});
    let request = document(json!({"store-ref": "/b"}));
    let response = server.post("/api/v1/interpolate", request).await;
    assert_eq!(response.expect(200).json(), document(json!({"c": 1})));
}

/// Returns the interfaces that a component imports, one per line, in alphabetical order.
fn imports(plugin: &str) -> String {
    let bytes = fs::read(component(plugin)).unwrap();
    let Ok(DecodedWasm::Component(resolve, world)) = decode(&bytes) else {
        panic!("{plugin} is not a component");
    };
    let imports = resolve.worlds[world].imports.keys();
    let names: BTreeSet<String> = imports.map(|key| resolve.name_world_key(key)).collect();
    names.into_iter().map(|name| name + "\n").collect()
}

/// The error for a rejected generator.
const REASON: &str = "although each call got different random bytes";

#[test]
fn constant_randomness_of_javascript_engines_is_detected() {
    for name in ["quickjs", "starling-monkey"] {
        assert_constant_randomness(name);
    }
    if let Some(component) = component_by_toolchain("quickjs") {
        let arguments = ["plugin", "tested", component.to_str().unwrap()];
        let refused = run_program(&workspace(), &arguments, &[]).expect(1);
        refused.errors.assert_contains(REASON);
    }
}

#[test]
fn server_does_not_start_with_constant_randomness() {
    let Some(component) = component_by_toolchain("quickjs") else {
        return;
    };
    let refusal = Server::refusal(&Options::default().random_generator("quickjs", &component));
    for expected in ["the plugin quickjs", REASON] {
        refusal.assert_contains(expected);
    }
}

/// Asserts that only the entropy test fails.
fn assert_constant_randomness(name: &str) {
    let Some(component) = component_by_toolchain(name) else {
        return;
    };
    let file = component.to_str().unwrap();
    let arguments = ["plugin", "test", file, "--output", "json"];
    let run = run_program(&workspace(), &arguments, &[]).expect(3);
    let tested = run.json();
    assert_eq!(tested["entropy"]["faults"][0]["rule"], "constant");
    let checks = tested["checks"].as_array().unwrap();
    let faults: Vec<&str> = checks
        .iter()
        .filter_map(|check| check["fault"].as_str())
        .collect();
    assert!(
        matches!(faults[..], [fault] if fault.contains(REASON)),
        "{faults:#?}"
    );
}

#[test]
fn plugin_tested_accepts_random_generators_and_untestable_plugins() {
    // A resolver generates no values, and the values of `hostile` are derived.
    let files = ["password", "interpolation", "hostile"].map(component);
    let files = files.iter().map(|file| file.to_str().unwrap());
    let arguments: Vec<_> = ["plugin", "tested"].into_iter().chain(files).collect();
    run_program(&workspace(), &arguments, &[]).expect(0);
}
