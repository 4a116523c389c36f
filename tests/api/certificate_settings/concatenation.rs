//! Both certificates of a CA in `ca` during its rotation.

use keywright_harness::{Options, Server};
use serde_json::{Value, json};

use super::{CONCATENATED, both, ca, certificate, options, server};
use crate::{
    certificates::Certificate,
    given::{self, generate_certificate},
    made_elsewhere,
};

/// Generates `/root` and a transitional version of it; returns both certificates, the active one first.
async fn root_in_rotation(server: &Server) -> (String, String) {
    let root = Certificate::generate_root(server, "/root").await;
    let old = given::newest(server, "/root").await;
    let body = json!({"set_as_transitional": true});
    let new = root.regenerate(body).await.expect(200).json();
    (certificate(&old), certificate(&new))
}

fn leaf_parameters() -> Value {
    json!({"ca": "/root"})
}

#[tokio::test]
async fn responses_contain_both_ca_versions_the_signing_one_first() {
    let server = server(CONCATENATED).await;
    let (old, new) = root_in_rotation(&server).await;
    let both = both(&old, &new);
    let generated = generate_certificate(&server, "/leaf", leaf_parameters()).await;
    assert_eq!(ca(&generated), both);
    let kept = generate_certificate(&server, "/leaf", leaf_parameters()).await;
    assert_eq!(kept["id"], generated["id"]);
    assert_eq!(kept["value"], generated["value"]);

    let leaf = Certificate::named(&server, "/leaf").await;
    let regenerated = server.regenerate("/leaf").await.expect(200).json();
    assert_eq!(ca(&regenerated), both);
    let regenerated = leaf.regenerate(json!({})).await.expect(200).json();
    assert_eq!(ca(&regenerated), both);
    let body = json!({"name": "/leaf", "regenerate": true});
    let through_data = server.post("/api/v1/data", body).await.expect(200).json();
    assert_eq!(ca(&through_data), both);

    for path in [
        "/api/v1/data?name=/leaf".to_owned(),
        "/api/v1/data?name=/leaf&current=true".to_owned(),
        format!("/api/v1/data/{}", given::id(&generated)),
        leaf.path("versions"),
        leaf.path("versions?current=true"),
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
async fn without_a_transitional_ca_version_responses_contain_one_ca() {
    let server = server(CONCATENATED).await;
    let root = generate_certificate(&server, "/root", json!({"is_ca": true})).await;
    assert_eq!(ca(&root), certificate(&root));
    let leaf = generate_certificate(&server, "/leaf", leaf_parameters()).await;
    assert_eq!(ca(&leaf), certificate(&root));
    let root = Certificate::named(&server, "/root").await;
    let body = json!({"set_as_transitional": true});
    let transitional = root.regenerate(body).await.expect(200).json();
    assert_eq!(ca(&transitional), certificate(&transitional));
}

#[tokio::test]
async fn a_transitional_signer_comes_before_the_active_version() {
    let server = server(CONCATENATED).await;
    let (old, new) = root_in_rotation(&server).await;
    generate_certificate(&server, "/leaf", leaf_parameters()).await;
    let allowed = json!({"allow_transitional_parent_to_sign": true});
    let leaf = Certificate::named(&server, "/leaf").await;
    let regenerated = leaf.regenerate(allowed).await.expect(200).json();
    assert_eq!(ca(&regenerated), both(&new, &old));
    let read = &given::versions(&server, "/leaf").await[0];
    assert_eq!(read["id"], regenerated["id"]);
    assert_eq!(ca(read), both(&new, &old));
}

#[tokio::test]
async fn bulk_regenerated_leaves_trust_transitional_and_new_ca() {
    let server = server(CONCATENATED).await;
    for (name, parameters) in [
        ("/root", json!({"is_ca": true})),
        ("/middle", json!({"is_ca": true, "ca": "/root"})),
        ("/leaf", json!({"ca": "/middle"})),
    ] {
        generate_certificate(&server, name, parameters).await;
    }
    let body = json!({"set_as_transitional": true});
    let middle = Certificate::named(&server, "/middle").await;
    let transitional = middle.regenerate(body).await.expect(200).json();
    server.bulk_regenerate("/root").await.expect(200);
    let middle = given::newest(&server, "/middle").await;
    assert_eq!(middle["transitional"], false);
    let leaf = given::newest(&server, "/leaf").await;
    let both = both(&certificate(&middle), &certificate(&transitional));
    assert_eq!(ca(&leaf), both);
}

#[tokio::test]
async fn responses_to_set_add_move_and_delete_contain_the_signer() {
    let server = server(CONCATENATED).await;
    let root = made_elsewhere::authority("root");
    let leaf = root.sign_leaf("leaf");
    let value = json!({"certificate": root.certificate, "private_key": root.private_key});
    let authority = Certificate::set(&server, "/root", value).await;
    let body = json!({"set_as_transitional": true});
    let new = authority.regenerate(body).await.expect(200).json();
    let both = both(&root.certificate, &certificate(&new));

    let value = json!({"certificate": leaf.certificate, "ca_name": "/root"});
    let set = given::set(&server, "/leaf", "certificate", value.clone()).await;
    assert_eq!(ca(&set), root.certificate);
    let leaf = Certificate::named(&server, "/leaf").await;
    let body = json!({"value": value});
    let added = leaf.add_version(body).await.expect(200).json();
    assert_eq!(ca(&added), root.certificate);
    for version in [json!(added["id"]), Value::Null] {
        let moved = leaf.move_transitional(version).await.expect(200).json();
        for version in moved.as_array().unwrap() {
            assert_eq!(ca(version), root.certificate);
        }
    }
    for version in leaf.versions().await {
        assert_eq!(ca(&version), both);
    }
    let deleted = leaf.delete_version(&given::id(&set)).await;
    assert_eq!(ca(&deleted.expect(200).json()), root.certificate);
}

#[tokio::test]
async fn the_second_ca_is_always_stored_and_shown_by_setting() {
    let server = Server::start().await;
    let (old, new) = root_in_rotation(&server).await;
    let generated = generate_certificate(&server, "/leaf", leaf_parameters()).await;
    assert_eq!(ca(&generated), old);
    assert_eq!(ca(&given::newest(&server, "/leaf").await), old);
    let server = Server::start_in(server.stop().await, &options(CONCATENATED)).await;
    let read = given::newest(&server, "/leaf").await;
    assert_eq!(ca(&read), both(&old, &new));
    let server = Server::start_in(server.stop().await, &Options::default()).await;
    assert_eq!(
        given::versions(&server, "/leaf").await,
        [generated_read(&generated)]
    );
}

/// A generated version as returned by reads: without issuance fields.
fn generated_read(generated: &Value) -> Value {
    let mut version = generated.clone();
    for member in ["duration_overridden", "duration_used", "key_length"] {
        version.as_object_mut().unwrap().remove(member);
    }
    version
}
