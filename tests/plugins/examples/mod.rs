//! The examples: each passes its test vectors, and independent programs check the values of those in languages other than Rust over
//! HTTPS.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test ends when what it needs is not there"
)]

mod age;
mod diceware;
mod totp;
mod uuid;

use std::{fs, path::PathBuf};

use keywright_harness::{
    Options, Program, Server, component_by_toolchain, run_program, toolchain_program, workspace,
};
use serde_json::{Value, json};

#[test]
fn c_generator_passes_its_tests() {
    passes_its_own_tests("uuid", "uuid-generator");
}

#[test]
fn go_generator_passes_its_tests() {
    passes_its_own_tests("age", "age-generator");
}

#[test]
fn javascript_generator_passes_its_tests() {
    passes_its_own_tests("diceware", "passphrase-generator");
}

#[test]
fn python_generator_passes_its_tests() {
    passes_its_own_tests("totp", "totp-generator");
}

#[test]
fn rust_generator_passes_its_tests() {
    passes_its_own_tests("wireguard", "wireguard-generator");
}

#[test]
fn configurations_name_the_built_components() {
    for folder in [
        "age-generator",
        "passphrase-generator",
        "totp-generator",
        "uuid-generator",
        "wireguard-generator",
    ] {
        let section = fs::read_to_string(own_file(folder, "keywright.toml")).unwrap();
        assert!(section.contains(&component_path(folder)), "{section}");
        let readme = fs::read_to_string(own_file(folder, "README.md")).unwrap();
        let (build, test) = (format!("examples/{folder}\n"), component_path(folder));
        assert!(readme.contains(&format!("keywright plugin build {build}")));
        assert!(readme.contains(&format!("keywright plugin test {test}")));
    }
}

/// One server for all of them, because the larger ones take seconds to compile.
#[tokio::test]
async fn values_generated_over_https_are_valid() {
    let mut options = Options::default();
    let mut configured = Vec::new();
    for (credential_type, folder) in [
        ("age", "age-generator"),
        ("diceware", "passphrase-generator"),
        ("totp", "totp-generator"),
        ("uuid", "uuid-generator"),
    ] {
        if let Some(component) = component_by_toolchain(credential_type) {
            let section = fs::read_to_string(own_file(folder, "keywright.toml")).unwrap();
            let here = component.to_str().unwrap();
            options = options.extra(&section.replace(&component_path(folder), here));
            configured.push(credential_type);
        }
    }
    let server = Server::start_with(&options).await;
    for credential_type in configured {
        match credential_type {
            "age" => age::is_an_identity_of_age(&server).await,
            "diceware" => diceware::is_a_passphrase_of_the_list(&server).await,
            "totp" => totp::is_a_secret_of_one_time_passwords(&server).await,
            _ => uuid::is_a_uuid_or_a_token(&server).await,
        }
    }
}

/// Runs the command in the README that tests a part of the example without a component.
#[test]
fn go_generator_encodes_keys_like_the_standard() {
    let Some(mut go) = toolchain_program("go") else {
        return;
    };
    let readme = fs::read_to_string(own_file("age-generator", "README.md")).unwrap();
    let (_, command) = readme.split_once("`go ").unwrap();
    let (arguments, _) = command.split_once('`').unwrap();
    go.current_dir(workspace().join("examples/age-generator"));
    let tested = Program::finish(go.args(arguments.split(' ')), "").expect_success();
    assert!(tested.starts_with("ok "), "{tested}");
}

/// Runs `keywright plugin test` with the test vectors next to the sources.
fn passes_its_own_tests(credential_type: &str, folder: &str) {
    let Some(component) = component_by_toolchain(credential_type) else {
        return;
    };
    let vectors = own_file(folder, &format!("{folder}.vectors.json"));
    let expectations: Vec<Value> =
        serde_json::from_str(&fs::read_to_string(&vectors).unwrap()).unwrap();
    let arguments = [
        "plugin",
        "test",
        component.to_str().unwrap(),
        "--vectors",
        vectors.to_str().unwrap(),
        "--output",
        "json",
    ];
    let run = run_program(&workspace(), &arguments, &[]).expect(0);
    let tested: Value = serde_json::from_str(&run.output).unwrap();
    let last = format!("expectation {} is met", expectations.len());
    assert!(tested["checks"].to_string().contains(&last), "{tested:#}");
    assert_eq!(tested["entropy"]["faults"], Value::Array(Vec::new()));
}

/// Returns the output path of `keywright plugin build` for an example, relative to the workspace's root.
fn component_path(folder: &str) -> String {
    format!("examples/{folder}/{folder}.wasm")
}

fn own_file(folder: &str, file: &str) -> PathBuf {
    workspace().join("examples").join(folder).join(file)
}

/// Generates a value, and asserts that it converges, can be regenerated, and that unknown parameters are rejected.
async fn made(server: &Server, credential_type: &str, parameters: &Value) -> Value {
    let name = format!("/{credential_type}");
    let generate = |parameters: &Value| server.generate(&name, credential_type, parameters.clone());
    let first = generate(parameters).await.expect(200).json();
    assert_eq!(first["type"], credential_type);
    let again = generate(parameters).await.expect(200).json();
    assert_eq!(again["id"], first["id"], "{parameters}");
    let second = server.regenerate(&name).await.expect(200).json();
    assert_ne!(second["value"], first["value"]);
    let mut unknown = parameters.clone();
    unknown["unknown"] = json!(true);
    generate(&unknown).await.expect(400).error();
    second["value"].clone()
}
