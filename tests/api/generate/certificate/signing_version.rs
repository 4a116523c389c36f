//! The version of the CA that signs.

use keywright_harness::Server;
use serde_json::{Value, json};

use crate::{
    certificates::assert_signed_by, given::generate_certificate, made_elsewhere::authority,
};

#[tokio::test]
async fn the_newest_version_of_the_ca_signs() {
    let server = Server::start().await;
    generate_certificate(&server, "/root", json!({"is_ca": true})).await;
    let newest = server.regenerate("/root").await.expect(200).json();
    let leaf = generate_certificate(&server, "/leaf", json!({"ca": "/root"})).await;
    assert_signed_by(&leaf, &newest);
}

#[tokio::test]
async fn a_ca_never_falls_back_to_an_older_version_to_sign() {
    let server = Server::start().await;
    generate_certificate(&server, "/root", json!({"is_ca": true})).await;
    let without_key = json!({"certificate": authority("root").certificate});
    server
        .set("/root", "certificate", without_key)
        .await
        .expect(200);
    let leaf = json!({"common_name": "leaf", "ca": "/root"});
    server
        .generate("/leaf", "certificate", leaf)
        .await
        .expect(400)
        .error();
    assert_eq!(server.versions("/leaf").await, [] as [Value; 0]);
}
