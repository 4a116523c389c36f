//! Files written by people or by other clients of this API.

use keywright_harness::{Server, Shell};
use serde_json::{Value, json};

use crate::given;

#[tokio::test]
async fn a_file_of_another_client_is_imported() {
    let source = Server::start().await;
    given::certificate(&source, "/ca", json!({"is_ca": true})).await;
    given::certificate(&source, "/leaf", json!({"ca": "/ca"})).await;
    let made = given::stored(&source, "").await;
    let (ca, leaf) = (&made["/ca"][1], &made["/leaf"][1]);
    let file = FILE
        .replace("@leaf-key", &block(&leaf["private_key"]))
        .replace("@leaf", &block(&leaf["certificate"]))
        .replace("@ca-key", &block(&ca["private_key"]))
        .replace("@ca", &block(&ca["certificate"]));
    let server = Server::start().await;
    let shell = Shell::of(&server);
    given::file(&shell, "export.yml", &file);
    shell.run(&["import", "export.yml"]).expect(0);
    let stored = given::stored(&server, "").await;
    let value = |name: &str| &stored[name][1];
    assert_eq!(*value("/dep/leaf"), *leaf);
    assert_eq!(*value("/dep/ca"), *ca);
    assert_eq!(value("/dep/number"), &json!("5432"));
    assert_eq!(value("/dep/large"), &json!("12345678901234567890123"));
    assert_eq!(value("/dep/yes"), &json!("yes"));
    assert_eq!(value("/dep/date"), &json!("2026-11-22"));
    assert_eq!(value("/dep/octal"), &json!("0755"));
    assert_eq!(value("/dep/motd"), &json!("line one\nline two\n"));
    assert_eq!(
        value("/dep/json"),
        &json!({"port": 5432, "on": true, "ratio": 0.5, "words": ["no", "null"], "none": null})
    );
    assert_eq!(
        *value("/dep/user"),
        json!({"username": "admin", "password": "shared"})
    );
    assert_eq!(value("/dep/shared"), &json!("shared"));
    assert_eq!(stored["/dep/shared"][2], json!({"team": "a", "tier": 1}));
    let listed = server.get("/api/v1/certificates?name=/dep/leaf").await;
    assert_eq!(
        listed.expect(200).json()["certificates"][0]["signed_by"],
        json!("/dep/ca")
    );
}

/// A text as a YAML block scalar below a field.
fn block(text: &Value) -> String {
    let lines = text.as_str().unwrap().lines();
    let lines: Vec<String> = lines.map(|line| format!("      {line}\n")).collect();
    format!("|\n{}", lines.concat())
}

const FILE: &str = r#"---
credentials:
- name: /dep/leaf
  type: certificate
  value:
    ca: ""
    ca_name: /dep/ca
    certificate: @leaf
    private_key: @leaf-key
- name: /dep/ca
  type: certificate
  value:
    ca: @ca
    certificate: @ca
    private_key: @ca-key
- name: /dep/number
  type: value
  value: 5432
- name: /dep/large
  type: value
  value: 12345678901234567890123
- name: dep/yes
  type: password
  value: yes
- name: /dep/date
  type: value
  value: 2026-11-22
- name: /dep/octal
  type: value
  value: 0755
- name: /dep/motd
  type: value
  value: |
    line one
    line two
- name: /dep/json
  type: json
  value: {port: 5432, "on": true, ratio: .5, words: [no, "null"], none: ~}
- name: /dep/shared
  type: password
  value: &shared shared
  metadata: {team: a, tier: 1}
- name: /dep/user
  type: user
  value:
    username: admin
    password: *shared
    password_hash: $6$rounds=5000$abc$def
- name: /dep/ssh
  type: ssh
  value:
    public_key: ssh-rsa AAAAB3NzaC1yc2E= me
    private_key: ""
    public_key_fingerprint: EvI0/GIUgDjcoCzUQM+EtwnVTryNsKRd6TrHAGKJJSI
- name: /dep/rsa
  type: rsa
  value: {public_key: null, private_key: p}
"#;
