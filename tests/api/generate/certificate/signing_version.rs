//! Which version of the authority signs.

use keywright_harness::Server;
use serde_json::{Value, json};

use crate::made_elsewhere::authority;

#[tokio::test]
async fn the_newest_version_of_the_authority_signs() {
    let server = Server::start().await;
    let root = json!({"common_name": "root", "is_ca": true});
    server
        .generate("/root", "certificate", root)
        .await
        .expect(200);
    let newest = server.regenerate("/root").await.expect(200).json();
    let leaf = json!({"common_name": "leaf", "ca": "/root"});
    let leaf = server
        .generate("/leaf", "certificate", leaf)
        .await
        .expect(200)
        .json();
    assert_eq!(leaf["value"]["ca"], newest["value"]["certificate"]);
}

#[tokio::test]
async fn an_authority_whose_newest_version_can_not_sign_does_not_fall_back_to_an_older_one() {
    let server = Server::start().await;
    let root = json!({"common_name": "root", "is_ca": true});
    server
        .generate("/root", "certificate", root)
        .await
        .expect(200);
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
