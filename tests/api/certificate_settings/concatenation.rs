//! Both certificates of an authority in `ca`, while it is being replaced.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends when what it needs is not there"
)]

use keywright_harness::{Options, Server};
use serde_json::{Value, json};

use super::{
    options,
    rotation::{CONCATENATED, ca, certificate, certificate_id, regenerate, root_in_rotation},
    server,
};
use crate::{given, made_elsewhere};

/// What `ca` holds when the first certificate signed and the second is trusted.
fn both(signing: &str, trusted: &str) -> String {
    format!("{}\n{}\n", signing.trim(), trusted.trim())
}

fn leaf_parameters() -> Value {
    json!({"common_name": "leaf", "ca": "/root"})
}

#[tokio::test]
async fn what_is_read_generated_and_regenerated_holds_both_the_one_that_signed_first() {
    let server = server(CONCATENATED).await;
    let (old, new) = root_in_rotation(&server).await;
    let both = both(&old, &new);
    let generated = given::generate(&server, "/leaf", "certificate", leaf_parameters()).await;
    assert_eq!(ca(&generated), both);
    let kept = given::generate(&server, "/leaf", "certificate", leaf_parameters()).await;
    assert_eq!(kept["id"], generated["id"]);
    assert_eq!(kept["value"], generated["value"]);

    let id = certificate_id(&server, "/leaf").await;
    let regenerated = server.regenerate("/leaf").await.expect(200).json();
    assert_eq!(ca(&regenerated), both);
    assert_eq!(ca(&regenerate(&server, "/leaf", json!({})).await), both);
    let body = json!({"name": "/leaf", "regenerate": true});
    let through_data = server.post("/api/v1/data", body).await.expect(200).json();
    assert_eq!(ca(&through_data), both);

    for path in [
        "/api/v1/data?name=/leaf".to_owned(),
        "/api/v1/data?name=/leaf&current=true".to_owned(),
        format!("/api/v1/data/{}", given::id(&generated)),
        format!("/api/v1/certificates/{id}/versions"),
        format!("/api/v1/certificates/{id}/versions?current=true"),
    ] {
        let answer = server.get(&path).await.expect(200).json();
        let answer = answer.get("data").cloned().unwrap_or(answer);
        let versions = match answer {
            Value::Array(versions) => versions,
            version => vec![version],
        };
        assert!(!versions.is_empty(), "{path}");
        for version in versions {
            assert_eq!(ca(&version), both, "{path}");
            assert_eq!(
                given::members(&version["value"]),
                ["ca", "certificate", "private_key"]
            );
        }
    }
}

#[tokio::test]
async fn a_leaf_of_an_authority_without_a_transitional_version_and_a_root_hold_one() {
    let server = server(CONCATENATED).await;
    let root = json!({"common_name": "root", "is_ca": true});
    let root = given::generate(&server, "/root", "certificate", root).await;
    assert_eq!(ca(&root), certificate(&root));
    let leaf = given::generate(&server, "/leaf", "certificate", leaf_parameters()).await;
    assert_eq!(ca(&leaf), certificate(&root));
    let transitional = regenerate(&server, "/root", json!({"set_as_transitional": true})).await;
    assert_eq!(ca(&transitional), certificate(&transitional));
}

#[tokio::test]
async fn where_the_transitional_version_may_sign_it_comes_first_and_the_other_is_trusted() {
    let server = server(CONCATENATED).await;
    let (old, new) = root_in_rotation(&server).await;
    given::generate(&server, "/leaf", "certificate", leaf_parameters()).await;
    let allowed = json!({"allow_transitional_parent_to_sign": true});
    let regenerated = regenerate(&server, "/leaf", allowed).await;
    assert_eq!(ca(&regenerated), both(&new, &old));
    let read = &given::versions(&server, "/leaf").await[0];
    assert_eq!(read["id"], regenerated["id"]);
    assert_eq!(ca(read), both(&new, &old));
}

#[tokio::test]
async fn what_is_regenerated_in_bulk_trusts_the_transitional_version_beside_the_new_one() {
    let server = server(CONCATENATED).await;
    for (name, parameters) in [
        ("/root", json!({"is_ca": true})),
        ("/middle", json!({"is_ca": true, "ca": "/root"})),
        ("/leaf", json!({"ca": "/middle"})),
    ] {
        let mut parameters = parameters;
        parameters["common_name"] = json!(name);
        given::generate(&server, name, "certificate", parameters).await;
    }
    let body = json!({"set_as_transitional": true});
    let transitional = regenerate(&server, "/middle", body).await;
    let body = json!({"signed_by": "/root"});
    let answer = server.post("/api/v1/bulk-regenerate", body).await;
    answer.expect(200);
    let middle = &given::versions(&server, "/middle").await[0];
    assert_eq!(middle["transitional"], false);
    let leaf = &given::versions(&server, "/leaf").await[0];
    let both = both(&certificate(middle), &certificate(&transitional));
    assert_eq!(ca(leaf), both);
}

#[tokio::test]
async fn answers_to_set_add_move_and_delete_hold_the_one_that_signed() {
    let server = server(CONCATENATED).await;
    let root = made_elsewhere::authority("root");
    let leaf = root.sign_leaf("leaf");
    let value = json!({"certificate": root.certificate, "private_key": root.private_key});
    given::set(&server, "/root", "certificate", value).await;
    let new = regenerate(&server, "/root", json!({"set_as_transitional": true})).await;
    let both = both(&root.certificate, &certificate(&new));

    let value = json!({"certificate": leaf.certificate, "ca_name": "/root"});
    let set = given::set(&server, "/leaf", "certificate", value.clone()).await;
    assert_eq!(ca(&set), root.certificate);
    let id = certificate_id(&server, "/leaf").await;
    let versions = format!("/api/v1/certificates/{id}/versions");
    let body = json!({"value": value});
    let added = server.post(&versions, body).await.expect(200).json();
    assert_eq!(ca(&added), root.certificate);
    for version in [json!(added["id"]), Value::Null] {
        let path = format!("/api/v1/certificates/{id}/update_transitional_version");
        let body = json!({"version": version});
        let moved = server.put(&path, body).await.expect(200).json();
        for version in moved.as_array().unwrap() {
            assert_eq!(ca(version), root.certificate);
        }
    }
    for version in given::versions(&server, "/leaf").await {
        assert_eq!(ca(&version), both);
    }
    let path = format!("{versions}/{}", given::id(&set));
    let deleted = server.delete(&path).await.expect(200).json();
    assert_eq!(ca(&deleted), root.certificate);
}

#[tokio::test]
async fn the_second_is_stored_always_and_shown_when_the_setting_is_on() {
    let server = Server::start().await;
    let (old, new) = root_in_rotation(&server).await;
    let generated = given::generate(&server, "/leaf", "certificate", leaf_parameters()).await;
    assert_eq!(ca(&generated), old);
    assert_eq!(ca(&given::versions(&server, "/leaf").await[0]), old);
    let server = Server::start_in(server.stop().await, &options(CONCATENATED)).await;
    let read = given::versions(&server, "/leaf").await;
    assert_eq!(ca(&read[0]), both(&old, &new));
    let server = Server::start_in(server.stop().await, &Options::default()).await;
    assert_eq!(
        given::versions(&server, "/leaf").await,
        [generated_read(&generated)]
    );
}

/// A generated version as it is read: without how it was issued.
fn generated_read(generated: &Value) -> Value {
    let mut version = generated.clone();
    for member in ["duration_overridden", "duration_used", "key_length"] {
        version.as_object_mut().unwrap().remove(member);
    }
    version
}
