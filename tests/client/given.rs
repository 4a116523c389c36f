//! Fixtures for tests of exports and imports.

use keywright_harness::{Server, Shell};
use serde_json::{Value, json};

/// Generates a certificate with its name as common name and a key that is generated quickly.
pub(crate) async fn certificate(server: &Server, name: &str, mut parameters: Value) -> Value {
    parameters["common_name"] = json!(name);
    parameters["key_type"] = json!("ecdsa-p256");
    let made = server.generate(name, "certificate", parameters).await;
    made.expect(200).json()
}

/// The type, value and metadata of the active version of each credential below a path, by name, without fields that the server
/// computes.
pub(crate) async fn stored(server: &Server, path: &str) -> Value {
    let found = server.get(&format!("/api/v1/data?path={path}")).await;
    let found = found.expect(200).json();
    let mut stored = json!({});
    for item in found["credentials"].as_array().unwrap() {
        let name = item["name"].as_str().unwrap();
        let answer = server
            .get(&format!("/api/v1/data?current=true&name={name}"))
            .await
            .expect(200);
        let mut version = answer.json()["data"][0].take();
        let is_free = version["type"] == json!("json");
        if let Some(members) = version["value"].as_object_mut()
            && !is_free
        {
            members.remove("password_hash");
            members.remove("public_key_fingerprint");
        }
        stored[name] = json!([version["type"], version["value"], version["metadata"]]);
    }
    stored
}

/// Writes a file into the shell's folder.
pub(crate) fn file(shell: &Shell, name: &str, text: &str) {
    std::fs::write(shell.file(name), text).unwrap();
}
