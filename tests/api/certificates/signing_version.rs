//! The version of a CA that signs.

use keywright_harness::Server;
use serde_json::{Value, json};

use super::{Certificate, assert_signed_by, ids};
use crate::given;

fn leaf() -> Value {
    json!({"common_name": "leaf", "ca": "/root"})
}

/// The body that allows a transitional version to sign.
fn allowed() -> Value {
    json!({"allow_transitional_parent_to_sign": true})
}

#[tokio::test]
async fn a_newer_transitional_version_does_not_sign() {
    let server = Server::start().await;
    let root = Certificate::generate_root(&server, "/root").await;
    let body = json!({"set_as_transitional": true});
    root.regenerate(body).await.expect(200);
    let in_use = root.current().await[0].clone();
    assert_signed_by(
        &given::generate_certificate(&server, "/leaf", leaf()).await,
        &in_use,
    );
    assert_signed_by(
        &server.regenerate("/leaf").await.expect(200).json(),
        &in_use,
    );
    let leaf = Certificate::named(&server, "/leaf").await;
    for body in [
        json!({}),
        json!({"allow_transitional_parent_to_sign": false}),
    ] {
        assert_signed_by(&leaf.regenerate(body).await.expect(200).json(), &in_use);
    }
}

#[tokio::test]
async fn a_newer_transitional_version_signs_if_allowed() {
    let server = Server::start().await;
    let root = Certificate::generate_root(&server, "/root").await;
    let leaf = Certificate::generate(&server, "/leaf", leaf()).await;
    let in_use = root.versions().await[0].clone();
    assert_signed_by(
        &leaf.regenerate(allowed()).await.expect(200).json(),
        &in_use,
    );
    let body = json!({"set_as_transitional": true});
    let newer = root.regenerate(body).await.expect(200).json();
    for asked in [json!(true), json!("true")] {
        let body = json!({"allow_transitional_parent_to_sign": asked});
        let signed = leaf.regenerate(body).await.expect(200).json();
        assert_signed_by(&signed, &newer);
        assert_eq!(signed["transitional"], false);
    }
}

#[tokio::test]
async fn an_older_transitional_version_never_signs() {
    let server = Server::start().await;
    let root = Certificate::generate_root(&server, "/root").await;
    let leaf = Certificate::generate(&server, "/leaf", leaf()).await;
    let newer = root.regenerate(json!({})).await.expect(200).json();
    let older = ids(&root.versions().await)[1].clone();
    root.move_transitional(json!(older)).await.expect(200);
    for body in [json!({}), allowed()] {
        assert_signed_by(&leaf.regenerate(body).await.expect(200).json(), &newer);
    }
}

#[tokio::test]
async fn a_ca_with_only_a_transitional_version_is_404() {
    let server = Server::start().await;
    let root = Certificate::generate_root(&server, "/root").await;
    let signed = Certificate::generate(&server, "/leaf", leaf()).await;
    let only = ids(&root.versions().await)[0].clone();
    root.move_transitional(json!(only)).await.expect(200);
    let answer = server.generate("/other", "certificate", leaf()).await;
    answer.expect(404).error();
    server.regenerate("/leaf").await.expect(404).error();
    for body in [json!({}), allowed()] {
        signed.regenerate(body).await.expect(404).error();
    }
    assert_eq!(signed.versions().await.len(), 1);
}
