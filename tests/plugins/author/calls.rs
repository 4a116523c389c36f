//! Calls of each function of a plugin with fixed input: the options of `keywright plugin run`, and test vectors.

use keywright_harness::{Commanded, Text};
use serde_json::{Value, json};

use super::{Workshop, test::faults};

/// Returns a component, a call in the form of a test vector, and the name of its result.
fn calls() -> Vec<(&'static str, Value, &'static str)> {
    let key_pair = json!({"accept": {"private_key": "hunter2"}});
    let recovery = json!({"recover": {"value": {}, "parameters": {}}});
    let document = json!({"s": [{"credentials": {"credhub-ref": "((/b))"}}]});
    vec![
        ("password", json!({"parameters": {"length": 9}}), "value"),
        (
            "current-issued",
            json!({"parameters": {"ca": "/any"}}),
            "value",
        ),
        ("ed25519", key_pair, "value"),
        ("password", json!({"accept": "hunter2"}), "value"),
        ("ed25519", recovery, "recovered"),
        ("interpolation", json!({"document": document}), "references"),
    ]
}

impl Workshop {
    /// Makes the call of a vector with `plugin run`, and returns the JSON output.
    fn called(&self, file: &str, call: &Value) -> Value {
        let mut arguments = ["run", file, "--reveal", "--random", "seed:x", "--now", NOW]
            .map(str::to_owned)
            .to_vec();
        for (field, input) in call.as_object().unwrap() {
            let option = if field == "accept" { "set" } else { field };
            if field == "recover" {
                arguments.extend(["--recover".to_owned(), input["value"].to_string()]);
                if let Some(stored) = input.get("parameters") {
                    arguments.extend(["--parameters".to_owned(), stored.to_string()]);
                }
            } else {
                arguments.extend([format!("--{option}"), input.to_string()]);
            }
        }
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        self.json(&arguments, 0)
    }
}

const NOW: &str = "2026-01-31T12:00:00Z";
const NOW_SECONDS: u64 = 1_769_860_800;

#[test]
fn result_of_a_call_is_the_same_in_a_vector() {
    for (component, call, result) in calls() {
        let workshop = Workshop::with(&[component]);
        let file = format!("{component}.wasm");
        let run = workshop.called(&file, &call);
        assert!(!run[result].is_null(), "{run:#}");
        let mut vector = call.clone();
        vector["random"] = json!("seed:x");
        vector["now_seconds"] = json!(NOW_SECONDS);
        vector[result] = run[result].clone();
        if let Some(canonical) = run.get("parameters") {
            vector["canonical"] = canonical.clone();
        }
        let mut other = vector.clone();
        other[result] = match &vector[result] {
            Value::Array(_) => json!([]),
            Value::Object(_) => json!({}),
            _ => json!("other"),
        };
        let faults = workshop.faults_of(&file, &json!([vector, other]));
        assert_eq!(faults, ["test vector 2: the result differs"]);
    }
}

impl Workshop {
    /// Tests a component with vectors, and returns their faults.
    fn faults_of(&self, file: &str, vectors: &Value) -> Vec<String> {
        self.write("vectors.json", vectors.to_string());
        let line = format!("test {file} --vectors vectors.json --output json");
        let tested = self.plugin(&line).json();
        let faults = faults(&tested).into_iter();
        let of_vectors = faults.filter(|(claim, _)| claim.starts_with("test vector "));
        of_vectors
            .map(|(claim, fault)| format!("{claim}: {fault}"))
            .collect()
    }
}

#[test]
fn vectors_expect_errors_of_each_function() {
    for (component, vectors) in [
        (
            "password",
            json!([
                {"parameters": {"length": 3}, "refused": "length"},
                {"accept": "", "refused": ""},
                {"settings": {"unknown": 1}, "misconfigured": true},
            ]),
        ),
        (
            "ed25519",
            json!([{"accept": {"public_key": "a", "size": 1}, "refused": "size"}]),
        ),
        (
            "hostile",
            json!([{
                "recover": {"value": {}},
                "settings": {"recover": "refuse-value"},
                "refused": "length",
            }]),
        ),
        ("svid", json!([{"parameters": {}, "refused": "ca"}])),
        (
            "interpolation",
            json!([{"document": {}, "settings": {"unknown": 1}, "misconfigured": true}]),
        ),
    ] {
        let workshop = Workshop::with(&[component]);
        let faults = workshop.faults_of(&format!("{component}.wasm"), &vectors);
        assert!(faults.is_empty(), "{component}: {faults:?}");
    }
}

#[test]
fn unexpected_result_is_shown_as_a_diff() {
    let workshop = Workshop::with(&["interpolation"]);
    let vectors = json!([
        {
            "document": {"s": [
                {"credentials": {"credhub-ref": "((/b))"}},
                {"credentials": {"credhub-ref": "((/d))"}},
            ]},
            "references": [
                {"pointer": "/s/0/credentials", "name": "/b"},
                {"pointer": "/s/1/credentials", "name": "/e"},
            ],
        },
        {"document": {}, "refused": ""},
    ]);
    workshop.write("interpolation.vectors.json", vectors.to_string());
    let tested = workshop.plugin(&["test", "interpolation.wasm"]).expect(3);
    let (checks, _) = tested.output.split_once("\n\n").unwrap();
    let expected = r#"ok      its settings match their schema
ok      it accepts a document without references
FAILED  test vector 1: the result differs
        --- expected
        +++ returned
        @@ -5,7 +5,7 @@
               "pointer": "/s/0/credentials"
             },
             {
        -      "name": "/e",
        +      "name": "/d",
               "pointer": "/s/1/credentials"
             }
           ]
FAILED  test vector 2: the result differs
        --- expected
        +++ returned
        @@ -1,3 +1,3 @@
         {
        -  "refused": ""
        +  "references": []
         }"#;
    assert_eq!(checks, expected);
}

#[test]
fn fixed_random_bytes_and_time_determine_the_result() {
    let workshop = Workshop::with(&["wireguard"]);
    // RFC 7748, section 6.1: Alice's keys.
    let alice = "77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a";
    let run = workshop.json(&["run", "wireguard.wasm", "--random", alice], 0);
    let expected = "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=";
    assert_eq!(run["value"]["public_key"], expected);
    let public_key = |random| {
        let run = workshop.json(&["run", "wireguard.wasm", "--random", random], 0);
        run["value"]["public_key"].clone()
    };
    assert_eq!(public_key("seed:a"), public_key("seed:a"));
    assert_ne!(public_key("seed:a"), public_key("seed:b"));
    let too_few = "the plugin requested more random bytes than the 2 in random (--random)";
    let hexadecimal = "must be hexadecimal digits, or seed:TEXT";
    for (option, status, reported) in [
        ("--random 00ff", 1, too_few),
        ("--random 0", 2, hexadecimal),
        ("--random 0x00", 2, hexadecimal),
        ("--now yesterday", 2, "must be a time such as"),
        ("--now 1969-12-31T23:59:59Z", 2, "must be a time such as"),
    ] {
        workshop.fails(&format!("run wireguard.wasm {option}"), status, reported);
    }
}

#[test]
fn a_component_over_the_memory_limit_is_refused_with_its_size() {
    let workshop = Workshop::with(&["password"]);
    let limits = r#"{"memory_bytes_max": 65536}"#;
    let run = workshop.plugin(&["run", "password.wasm", "--limits", limits]);
    let refused = run.expect(1).errors;
    refused.assert_contains("memory has a minimum byte size of ");
    refused.assert_lacks("0x");
}

#[test]
fn call_of_another_kind_of_plugin_is_refused() {
    let workshop = Workshop::with(&["interpolation", "password", "user"]);
    let resolver = "the component is a resolver; pass the document";
    let recoverer = "the component does not export recoverer";
    let generator = "the component is a generator; omit --document";
    for (arguments, status, reported) in [
        ("password.wasm --document {}", 1, generator),
        ("interpolation.wasm", 1, resolver),
        ("interpolation.wasm --set 1", 1, resolver),
        ("password.wasm --recover 1", 1, recoverer),
        ("password.wasm --set {", 2, "the JSON ends too early"),
        ("user.wasm --set 1 --document 1", 2, "cannot be used with"),
    ] {
        workshop.fails(&format!("run {arguments}"), status, reported);
    }
    let value = r#"{"username": "a", "password": "hunter2"}"#;
    let hidden = workshop.plugin(&["run", "user.wasm", "--set", value]);
    hidden.expect(0).output.assert_lacks("hunter2");
}

/// `svid` generates no value without an issuer.
#[test]
fn issued_generator_is_signed_by_a_ca_for_tests() {
    let workshop = Workshop::with(&["svid"]);
    let tested = workshop.json(&["test", "svid.wasm", "--against", "svid.wasm"], 0);
    let requests = &tested["upgrade"]["requests"];
    assert!(requests[0]["parameters"]["ca"].is_string(), "{tested:#}");
    workshop.plugin("bench svid.wasm --calls 2").expect(0);

    let parameters = r#"{"ca": "/any", "duration": 9}"#;
    let arguments = ["run", "svid.wasm", "--reveal", "--parameters", parameters];
    let value = workshop.json(&arguments, 0)["value"].take();
    for (field, file) in [("bundle", "ca.pem"), ("x509_svid", "svid.pem")] {
        workshop.write(file, value[field].as_str().unwrap());
    }
    let folder = workshop.0.path().display();
    let verify = format!("verify -CAfile {folder}/ca.pem {folder}/svid.pem");
    Commanded::run("openssl", &verify, "").expect(0);
    let other = workshop.json(&arguments, 0)["value"].take();
    assert_eq!(other["bundle"], value["bundle"]);
    assert_ne!(other["x509_svid"], value["x509_svid"]);
}
