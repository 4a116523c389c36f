//! The examples: each passes its test vectors. Independent programs check values that a server generates with the examples
//! in languages other than Rust.

use std::{collections::BTreeSet, fs, path::PathBuf};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use keywright_harness::{
    Commanded, Options, Server, Text, component_by_toolchain, is_available, run_program,
    toolchain_program, toolchain_python, workspace,
};
use serde_json::{Value, json};
use uuid::{Uuid, Variant};

/// The types of the examples in Go, JavaScript, Python, C and Rust, with their folders.
const EXAMPLES: [(&str, &str); 5] = [
    ("age", "age-generator"),
    ("diceware", "passphrase-generator"),
    ("totp", "totp-generator"),
    ("uuid", "uuid-generator"),
    ("wireguard", "wireguard-generator"),
];

#[test]
fn each_example_passes_its_tests() {
    for (credential_type, folder) in EXAMPLES {
        assert_passes_its_tests(credential_type, folder);
    }
}

#[test]
fn configurations_name_the_built_components() {
    for (_, folder) in EXAMPLES {
        let section = fs::read_to_string(example_file(folder, "keywright.toml")).unwrap();
        section.assert_contains(&component_path(folder));
        let readme = fs::read_to_string(example_file(folder, "README.md")).unwrap();
        let (build, test) = (format!("examples/{folder}\n"), component_path(folder));
        readme.assert_contains(&format!("keywright plugin build {build}"));
        readme.assert_contains(&format!("keywright plugin test {test}"));
    }
}

/// Uses one server for all generators, because the larger components take seconds to compile.
#[tokio::test]
async fn values_generated_over_https_are_valid() {
    let mut options = Options::default();
    let mut configured = Vec::new();
    for (credential_type, folder) in &EXAMPLES[..4] {
        if let Some(component) = component_by_toolchain(credential_type) {
            let section = fs::read_to_string(example_file(folder, "keywright.toml")).unwrap();
            let built = component.to_str().unwrap();
            options = options.extra(&section.replace(&component_path(folder), built));
            configured.push(*credential_type);
        }
    }
    let server = Server::start_with(&options).await;
    for credential_type in configured {
        match credential_type {
            "age" => assert_age_identity(&server).await,
            "diceware" => assert_passphrase_from_the_list(&server).await,
            "totp" => assert_totp_secret(&server).await,
            _ => assert_uuid_or_token(&server).await,
        }
    }
}

/// Runs the command in the README that tests a part of the example without a component.
#[test]
fn go_generator_encodes_keys_like_the_standard() {
    let Some(mut go) = toolchain_program("go") else {
        return;
    };
    let readme = fs::read_to_string(example_file("age-generator", "README.md")).unwrap();
    let (_, command) = readme.split_once("`go ").unwrap();
    let (arguments, _) = command.split_once('`').unwrap();
    go.current_dir(workspace().join("examples/age-generator"));
    let tested = Commanded::finish(go.args(arguments.split(' ')), "")
        .expect(0)
        .output;
    assert!(tested.starts_with("ok "), "{tested}");
}

/// Runs `keywright plugin test` with the test vectors next to the sources.
fn assert_passes_its_tests(credential_type: &str, folder: &str) {
    let Some(component) = component_by_toolchain(credential_type) else {
        return;
    };
    let vectors = example_file(folder, &format!("{folder}.vectors.json"));
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
    let tested = run.json();
    let last = format!("test vector {}", expectations.len());
    assert!(tested["checks"].to_string().contains(&last), "{tested:#}");
    assert_eq!(tested["entropy"]["faults"], Value::Array(Vec::new()));
}

/// Returns the output path of `keywright plugin build` for an example, relative to the workspace's root.
fn component_path(folder: &str) -> String {
    format!("examples/{folder}/{folder}.wasm")
}

fn example_file(folder: &str, file: &str) -> PathBuf {
    workspace().join("examples").join(folder).join(file)
}

/// Generates a value, and asserts that it converges, can be regenerated, and that unknown parameters are rejected.
async fn generated(server: &Server, credential_type: &str, parameters: &Value) -> Value {
    let name = format!("/{credential_type}");
    let generate = |parameters: &Value| server.generate(&name, credential_type, parameters.clone());
    let first = generate(parameters).await.expect(200).json();
    assert_eq!(first["type"], credential_type);
    let again = generate(parameters).await.expect(200).json();
    assert_eq!(again["id"], first["id"], "{parameters}");
    let second = server.regenerated(&name).await;
    assert_ne!(second["value"], first["value"]);
    let mut unknown = parameters.clone();
    unknown["unknown"] = json!(true);
    generate(&unknown).await.expect(400).error();
    second["value"].clone()
}

/// Asserts that `age-keygen` computes the same recipient from the identity.
async fn assert_age_identity(server: &Server) {
    let value = generated(server, "age", &json!({})).await;
    if is_available("age-keygen") {
        let identity = value["identity"].as_str().unwrap();
        let recipient = Commanded::run("age-keygen", &["-y"], identity)
            .expect(0)
            .output;
        assert_eq!(value["recipient"], recipient.trim());
    }
}

async fn assert_passphrase_from_the_list(server: &Server) {
    let list = fs::read_to_string(example_file("passphrase-generator", "words.js")).unwrap();
    let words: BTreeSet<&str> = list.split('`').nth(1).unwrap().split_whitespace().collect();
    assert_eq!(words.len(), 1_296);
    for (parameters, count, separator) in [
        (json!({}), 8, "-"),
        (json!({"words": 32, "separator": " "}), 32, " "),
        (json!({"words": 5, "separator": "~!%"}), 5, "~!%"),
    ] {
        let value = generated(server, "diceware", &parameters).await;
        // One word contains a hyphen.
        let passphrase = value.as_str().unwrap().replace("yo-yo", "yo_yo");
        let chosen: Vec<String> = passphrase
            .split(separator)
            .map(|word| word.replace('_', "-"))
            .collect();
        assert_eq!(chosen.len(), count, "{value}");
        assert!(
            chosen.iter().all(|word| words.contains(word.as_str())),
            "{value}"
        );
    }
}

/// Prints pyotp's codes at these times, computed from the secret with the parameters, and from the URI.
const CODES: &str = "
import hashlib, json, sys, pyotp
given = json.load(sys.stdin)
digest = getattr(hashlib, given['algorithm'].lower())
by_secret = pyotp.TOTP(given['secret'], digits=given['digits'], digest=digest, interval=given['period'])
by_uri = pyotp.parse_uri(given['uri'])
json.dump({
    'by_secret': [by_secret.at(time) for time in given['times']],
    'by_uri': [by_uri.at(time) for time in given['times']],
    'issuer': by_uri.issuer,
    'account': by_uri.name,
}, sys.stdout)
";

async fn assert_totp_secret(server: &Server) {
    for parameters in [
        json!({"issuer": "ACME Co", "account": "ada@example.com"}),
        json!({"issuer": "A&B=?#/%", "account": "ä b", "digits": 8, "period": 60, "algorithm": "SHA512"}),
        json!({"issuer": "a", "account": "b", "digits": 7, "period": 15, "algorithm": "SHA256"}),
    ] {
        let value = generated(server, "totp", &parameters).await;
        let default = json!({"digits": 6, "period": 30, "algorithm": "SHA1"});
        let parameter = |name: &str| match &parameters[name] {
            Value::Null => default[name].clone(),
            given => given.clone(),
        };
        let Some(mut python) = toolchain_python() else {
            return;
        };
        let given = json!({
            "secret": value["secret"],
            "uri": value["uri"],
            "digits": parameter("digits"),
            "period": parameter("period"),
            "algorithm": parameter("algorithm"),
            "times": [59, 1_111_111_109, 20_000_000_000_u64],
        });
        let codes = Commanded::finish(python.args(["-c", CODES]), &given.to_string());
        let codes: Value = serde_json::from_str(&codes.expect(0).output).unwrap();
        assert_eq!(codes["by_uri"], codes["by_secret"], "{parameters}");
        let digits = codes["by_uri"][0].as_str().unwrap().len();
        assert_eq!(parameter("digits"), digits);
        assert_eq!(codes["issuer"], parameters["issuer"]);
        assert_eq!(codes["account"], parameters["account"]);
    }
    assert_rejects_parameters_without_app_support(server).await;
}

async fn assert_rejects_parameters_without_app_support(server: &Server) {
    for (parameters, named) in [
        (json!({"account": "a"}), "issuer"),
        (json!({"issuer": "a:b", "account": "a"}), "issuer"),
        (
            json!({"issuer": "a", "account": "a", "digits": 5}),
            "digits",
        ),
        (
            json!({"issuer": "a", "account": "a", "period": 0}),
            "period",
        ),
    ] {
        let refused = server.generate("/refused", "totp", parameters).await;
        refused.expect_error(400, named);
    }
}

async fn assert_uuid_or_token(server: &Server) {
    let value = generated(server, "uuid", &json!({})).await;
    let text = value.as_str().unwrap();
    let parsed = Uuid::parse_str(text).unwrap();
    assert_eq!(parsed.hyphenated().to_string(), text);
    assert_eq!(parsed.get_version_num(), 4);
    assert_eq!(parsed.get_variant(), Variant::RFC4122);
    for bytes in [16, 17, 18, 32, 64] {
        let parameters = json!({"format": "token", "bytes": bytes});
        let value = generated(server, "uuid", &parameters).await;
        let decoded = BASE64_URL_SAFE_NO_PAD.decode(value.as_str().unwrap());
        assert_eq!(decoded.unwrap().len(), bytes);
    }
}
