//! Replacing an authority step by step.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends when what it needs is not there"
)]

use keywright_harness::Server;
use serde_json::{Value, json};

use crate::given;

pub(super) const CONCATENATED: &str = "concatenate_cas = true";

/// Generates `/root` and, from it, a transitional version; returns both certificates, the one in use first.
pub(super) async fn root_in_rotation(server: &Server) -> (String, String) {
    let parameters = json!({"common_name": "root", "is_ca": true});
    let old = given::generate(server, "/root", "certificate", parameters).await;
    let new = regenerate(server, "/root", json!({"set_as_transitional": true})).await;
    (certificate(&old), certificate(&new))
}

/// Regenerates a certificate by its id.
pub(super) async fn regenerate(server: &Server, name: &str, body: Value) -> Value {
    let id = certificate_id(server, name).await;
    let path = format!("/api/v1/certificates/{id}/regenerate");
    server.post(&path, body).await.expect(200).json()
}

/// Moves the transitional flag of a certificate.
pub(super) async fn move_flag(server: &Server, name: &str, version: Value) {
    let id = certificate_id(server, name).await;
    let path = format!("/api/v1/certificates/{id}/update_transitional_version");
    let body = json!({"version": version});
    server.put(&path, body).await.expect(200);
}

pub(super) async fn certificate_id(server: &Server, name: &str) -> String {
    let path = format!("/api/v1/certificates?name={name}");
    let answer = server.get(&path).await.expect(200).json();
    let id = answer.pointer("/certificates/0/id").unwrap();
    id.as_str().unwrap().to_owned()
}

/// The member `ca` of a version's value.
pub(super) fn ca(version: &Value) -> String {
    member(version, "ca")
}

/// The member `certificate` of a version's value.
pub(super) fn certificate(version: &Value) -> String {
    member(version, "certificate")
}

fn member(version: &Value, name: &str) -> String {
    let member = version.pointer(&format!("/value/{name}")).unwrap();
    member.as_str().unwrap().to_owned()
}
