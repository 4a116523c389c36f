//! `keywright plugin run`.

use serde_json::json;

use super::Workshop;

#[test]
fn secrets_are_only_shown_with_reveal() {
    let workshop = Workshop::with(&["password", "wireguard"]);
    let hidden = workshop.json(&["run", "wireguard.wasm"], 0);
    assert_eq!(hidden["value"]["private_key"], "[redacted]");
    assert_eq!(hidden["value"]["public_key"].as_str().unwrap().len(), 44);
    assert_eq!(hidden["parameters"], json!({"preshared_key": false}));
    let shown = workshop.json(&["run", "wireguard.wasm", "--reveal"], 0);
    assert_eq!(shown["value"]["private_key"].as_str().unwrap().len(), 44);

    let hidden = workshop.plugin(&["run", "password.wasm"]).expect(0);
    assert_eq!(hidden.output, "\"[redacted]\"\n");
    let parameters = r#"{"length": 7}"#;
    let shown = workshop.plugin(&[
        "run",
        "password.wasm",
        "--reveal",
        "--parameters",
        parameters,
    ]);
    assert_eq!(shown.expect(0).output.len(), 7 + "\"\"\n".len());
}

#[test]
fn rejected_parameters_are_reported() {
    let workshop = Workshop::with(&["password"]);
    let parameters = r#"{"length": 1000}"#;
    let run = workshop
        .plugin(&["run", "password.wasm", "--parameters", parameters])
        .expect(1);
    assert!(
        run.errors.contains("length: must be from 4 to 200"),
        "{run:#?}"
    );
    assert_eq!(run.output, "");
}

#[test]
fn issuer_is_not_available() {
    let workshop = Workshop::with(&["certificate"]);
    let parameters = r#"{"common_name": "a", "ca": "/ca", "key_type": "ed25519"}"#;
    let run = workshop
        .plugin(&["run", "certificate.wasm", "--parameters", parameters])
        .expect(1);
    assert!(
        run.errors.contains("the parameter ca names an issuer"),
        "{run:#?}"
    );
    let parameters = r#"{"common_name": "a", "self_sign": true, "key_type": "ed25519"}"#;
    workshop
        .plugin(&["run", "certificate.wasm", "--parameters", parameters])
        .expect(0);
}

#[test]
fn guest_failures_are_reported_like_in_a_server() {
    let workshop = Workshop::with(&["hostile"]);
    for (behaviour, limits, expected) in [
        ("trap", "{}", "trapped"),
        ("loop", r#"{"deadline_ms": 50}"#, "exceeded its deadline"),
        ("large-output", "{}", "returned more output than its limit"),
        (
            "wrong-shape",
            "{}",
            "returned output that does not have the declared form",
        ),
        (
            "misconfigured",
            "{}",
            "reported that its settings are invalid",
        ),
    ] {
        let settings = json!({"generate": behaviour}).to_string();
        let arguments = [
            "run",
            "hostile.wasm",
            "--settings",
            &settings,
            "--limits",
            limits,
        ];
        let run = workshop.plugin(&arguments).expect(1);
        assert!(run.errors.contains(expected), "{behaviour}: {run:#?}");
    }
}
