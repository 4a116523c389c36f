//! `keywright plugin new --kind`: issued generators and resolvers are created, built, tested and used.

use std::fs;

use keywright_harness::{Commanded, Options, Server, Text};
use reqwest::Method;
use serde_json::{Value, json};

use super::{
    Workshop,
    build::{LANGUAGES, SLOWEST, has_tools},
};

impl Workshop {
    /// Creates a project of this kind and builds it. Returns its section of a configuration, or `None` if no tool is installed.
    fn configured(&self, kind: &str, language: &str) -> Option<String> {
        if !has_tools(language) {
            return None;
        }
        let name = format!("{kind}-in-{language}");
        let line = format!("new {name} --lang {language} --kind {kind}");
        self.plugin(&line).expect(0);
        self.with_toolchains(&["build", &name]).expect(0);
        let configuration = self.path(&name).join("keywright.toml");
        let parent = format!("component = \"{}/", self.0.path().display());
        let section = fs::read_to_string(configuration).unwrap();
        Some(section.replace("component = \"", &parent))
    }
}

#[tokio::test]
async fn issued_generator_is_signed_by_a_ca_of_a_server() {
    let workshop = Workshop::with(&[]);
    let mut options = Options::default();
    let mut languages = Vec::new();
    for language in ["rust", "c", "python", "go"] {
        if let Some(section) = workshop.configured("issued", language) {
            let file = format!("issued-in-{language}/issued-in-{language}.wasm");
            let tested = workshop.plugin(&["test", &file]).expect(0).output;
            tested.assert_contains("test vector 4");
            if language == SLOWEST {
                continue;
            }
            let settings = "settings = { domain = \".example.com\" }";
            options = options.extra(&format!("{section}{settings}\n"));
            languages.push(language);
        }
    }
    let server = Server::start_with(&options).await;
    let ca = json!({"common_name": "my-ca", "is_ca": true, "key_type": "ed25519"});
    let ca = server.generated("/ca", "certificate", ca).await;
    let ca = ca["value"]["certificate"].clone();
    let (callers_key, callers_public_key) = key_of_a_caller();
    for language in languages {
        let credential_type = format!("issued-in-{language}");
        let name = format!("/{credential_type}");
        let parameters = |host: &str| {
            let mut parameters = json!({"ca": "/ca", "common_name": host});
            if language == LANGUAGE_WITH_CALLERS_KEY {
                parameters["public_key"] = json!(callers_public_key);
            }
            parameters
        };
        let key = |value: &Value| {
            let own = value["private_key"].as_str();
            own.unwrap_or(&callers_key).to_owned()
        };
        let made = server.generate(&name, &credential_type, parameters("app.example.com"));
        let made = made.await.expect(200).json()["value"].clone();
        assert_eq!(made["ca"], ca);
        assert_is_signed(&workshop, &made, &key(&made));
        let again = server.regenerated(&name).await["value"].clone();
        assert_ne!(again["certificate"], made["certificate"]);
        let has_same_key = key(&again) == key(&made);
        assert_eq!(has_same_key, language == LANGUAGE_WITH_CALLERS_KEY);
        assert_is_signed(&workshop, &again, &key(&again));
        let refused = server.generate(&name, &credential_type, parameters("app.example.org"));
        refused.await.expect_error(400, "common_name must end in ");
    }
}

/// The language whose issued generator certifies a public key of the caller instead of generating a key.
const LANGUAGE_WITH_CALLERS_KEY: &str = "c";

/// Returns a private key in PEM, and its public key as base64.
fn key_of_a_caller() -> (String, String) {
    let run = |line, input: &str| Commanded::run("openssl", line, input).expect(0).output;
    let key = run("genpkey -algorithm ed25519", "");
    let public_key = run("pkey -pubout", &key);
    let lines = public_key.lines().filter(|line| !line.starts_with('-'));
    let public_key = lines.collect();
    (key, public_key)
}

/// Asserts that OpenSSL verifies the certificate, and that its public key belongs to the private key.
fn assert_is_signed(workshop: &Workshop, value: &Value, key: &str) {
    for (field, file) in [("ca", "ca.pem"), ("certificate", "certificate.pem")] {
        workshop.write(file, value[field].as_str().unwrap());
    }
    workshop.write("key.pem", key);
    let folder = workshop.0.path().display();
    let run = |line: String| Commanded::run("openssl", &line, "").expect(0).output;
    run(format!(
        "verify -purpose sslserver -verify_hostname app.example.com -CAfile {folder}/ca.pem {folder}/certificate.pem"
    ));
    let of_certificate = run(format!("x509 -in {folder}/certificate.pem -noout -pubkey"));
    let of_key = run(format!("pkey -in {folder}/key.pem -pubout"));
    assert_eq!(of_certificate, of_key);
}

#[tokio::test]
async fn resolver_from_template_finds_references() {
    let workshop = Workshop::with(&[]);
    for (language, _) in LANGUAGES {
        let Some(section) = workshop.configured("resolver", language) else {
            continue;
        };
        let file = format!("resolver-in-{language}/resolver-in-{language}.wasm");
        let tested = workshop.plugin(&["test", &file]).expect(0).output;
        tested.assert_contains("test vector 3");
        let options = |section| Options::default().without_plugins().extra(section);
        let server = Server::start_with(&options(&section)).await;
        let value = json!({"user": "ada"});
        server.stored("/database", "json", value.clone()).await;
        let interpolate = async |document| server.post("/api/v1/interpolate", document).await;
        let document =
            json!({"a": ["((/database))", {"b/~": "((database))"}], "c": "((", "d": null});
        let replaced = json!({"a": [value, {"b/~": value}], "c": "((", "d": null});
        assert_eq!(interpolate(document).await.expect(200).json(), replaced);
        let escaped = r#"{"\ud83d\ude00\u00e9\"\n": "((\u002fdatab\u0061se))"}"#;
        let request = server.authorized(Method::POST, "/api/v1/interpolate");
        let interpolated = server.send(request.body(escaped)).await.expect(200).json();
        assert_eq!(interpolated, json!({"\u{1f600}\u{e9}\"\n": value}));
        let refused = interpolate(json!({"a": "(())"})).await;
        refused.expect_error(400, "the reference (()) has no name");
        server.stop().await;

        let section = format!("{section}settings = {{ unknown = 1 }}\n");
        let refusal = Server::refusal(&options(&section));
        refusal.assert_contains("invalid settings: unknown is unknown");
    }
}

/// The reason why JavaScript has no template for issued generators. If this test fails with a newer jco, add the template.
#[test]
fn javascript_does_not_return_a_borrowed_ca() {
    let workshop = Workshop::with(&[]);
    let reason = "components of jco's QuickJS do not return the CA that they borrow";
    workshop.fails("new issued --lang js --kind issued", 1, reason);
    if !has_tools("js") {
        return;
    }
    workshop.created("issued", "js");
    let world = ("generator-plugin", "issued-generator-plugin");
    workshop.edit("issued/wit/plugin.wit", world.0, world.1);
    for (from, to) in [
        ("export const generator", "export const issuedGenerator"),
        ("entropyBitsMin", "issuerParameter: 'ca', entropyBitsMin"),
        ("properties: {", "properties: { ca: { type: 'string' },"),
    ] {
        workshop.edit("issued/plugin.js", from, to);
    }
    workshop.with_toolchains("build issued").expect(0);
    for (parameters, status) in [("{}", 0), (r#"{"ca": "/ca"}"#, 1)] {
        let arguments = ["run", "issued/issued.wasm", "--parameters", parameters];
        let errors = workshop.plugin(&arguments).expect(status).errors;
        let is_kept = errors.contains("borrow handles still remain at the end of the call");
        assert_eq!(is_kept, status == 1, "{errors}");
    }
}

#[test]
fn javascript_has_text_encoder_and_decoder() {
    let workshop = Workshop::with(&[]);
    if !has_tools("js") {
        return;
    }
    workshop.created("text", "js");
    let start = "function makeValue(parameters, settings) {\n";
    let calls = r"
  const utf8 = new TextEncoder().encode('\ufeffé€😀\ud800');
  note(utf8.join());
  note(new TextDecoder().decode(utf8));
  note(new TextDecoder().decode(Uint8Array.of(0x61, 0xe2, 0x82, 0xff, 0xed, 0xa0)));
  note(JSON.stringify(new TextEncoder().encodeInto('a€', new Uint8Array(3))));
  const streaming = new TextDecoder('utf-8');
  note(streaming.decode(utf8.subarray(3, 4), { stream: true }) + streaming.decode(utf8.subarray(4, 5)));
  new TextDecoder('utf-8', { fatal: true }).decode(Uint8Array.of(0xc0));
";
    workshop.edit("text/plugin.js", start, &format!("{start}{calls}"));
    workshop.with_toolchains("build text").expect(0);
    let run = workshop.plugin("run text/text.wasm").expect(1);
    let lines = run.errors.lines();
    let notes = lines.filter_map(|line| line.strip_prefix("note (generate): "));
    let notes: Vec<&str> = notes.collect();
    let expected = [
        "239,187,191,195,169,226,130,172,240,159,152,128,239,191,189",
        "é€😀\u{fffd}",
        "a\u{fffd}\u{fffd}\u{fffd}\u{fffd}",
        r#"{"read":1,"written":1}"#,
        "é",
        "TypeError: the bytes are not UTF-8",
    ];
    assert_eq!(notes[..expected.len()], expected);
}

#[test]
fn unsupported_modules_and_schema_keywords_are_reported() {
    let workshop = Workshop::with(&[]);
    if has_tools("python") {
        workshop.created("native", "python");
        let import = "import json\nimport numeric\n";
        workshop.edit("native/plugin.py", "import json\n", import);
        workshop.write("native/numeric.py", "from _numeric_core import add\n");
        let failed = workshop.with_toolchains("build native").expect(1);
        let lines: Vec<&str> = failed.errors.lines().collect();
        let [call, error] = lines[..] else {
            panic!("{failed:#?}");
        };
        assert!(call.starts_with("+ cd native && "), "{call}");
        let expected = "could not import numeric.py:1: ModuleNotFoundError: No module named '_numeric_core'; if it is not installed, add it to";
        error.assert_contains(expected);
    }
    if has_tools("c") {
        workshop.created("dated", "c");
        let member = r#"\"type\": \"string\", "#;
        let with_format = format!(r#"{member}\"format\": \"uuid\", "#);
        workshop.edit("dated/plugin.c", member, &with_format);
        workshop.with_toolchains("build dated").expect(0);
        let expected = r#": the host ignores "format": "uuid" in a schema; use "pattern""#;
        let tested = workshop.plugin(&["test", "dated/dated.wasm"]).expect(0);
        tested.errors.assert_contains(expected);
    }
}
