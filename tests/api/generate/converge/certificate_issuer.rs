//! Certificates: comparison of signers.

use keywright_harness::Server;
use serde_json::{Value, json};

use super::{Outcome, converge_from};
use crate::{certificates::Certificate, made_elsewhere::authority};

async fn with_root(name: &str, server: &Server) -> Value {
    let root = json!({"common_name": "root", "is_ca": true});
    server
        .generate_in_mode("overwrite", name, "certificate", root)
        .await
        .expect(200)
        .json()
}

#[tokio::test]
async fn another_ca_adds_a_version() {
    let server = Server::start().await;
    with_root("/root", &server).await;
    with_root("/other", &server).await;
    let by_root = json!({"common_name": "leaf", "ca": "/root"});
    let by_other = json!({"common_name": "leaf", "ca": "/other"});
    let made = server
        .generate("/a", "certificate", by_root.clone())
        .await
        .expect(200)
        .json();
    assert_eq!(
        converge_from(&server, &made, "certificate", &by_root).await,
        Outcome::Kept
    );
    assert_eq!(
        converge_from(&server, &made, "certificate", &by_other).await,
        Outcome::Written
    );
}

#[tokio::test]
async fn a_new_version_of_the_ca_adds_one_version() {
    let server = Server::start().await;
    with_root("/root", &server).await;
    let parameters = json!({"common_name": "leaf", "ca": "/root"});
    let made = server
        .generate("/a", "certificate", parameters.clone())
        .await
        .expect(200)
        .json();
    with_root("/root", &server).await;
    assert_eq!(
        converge_from(&server, &made, "certificate", &parameters).await,
        Outcome::Written
    );
    let renewed = server.versions("/a").await[0].clone();
    assert_eq!(
        converge_from(&server, &renewed, "certificate", &parameters).await,
        Outcome::Kept
    );
}

#[tokio::test]
async fn switching_between_ca_and_self_signed_adds_a_version() {
    let server = Server::start().await;
    with_root("/root", &server).await;
    let by_root = json!({"common_name": "leaf", "ca": "/root"});
    let by_itself = json!({"common_name": "leaf", "self_sign": true});
    let made = server
        .generate("/a", "certificate", by_root.clone())
        .await
        .expect(200)
        .json();
    assert_eq!(
        converge_from(&server, &made, "certificate", &by_itself).await,
        Outcome::Written
    );
    let own = server.versions("/a").await[0].clone();
    assert_eq!(
        converge_from(&server, &own, "certificate", &by_root).await,
        Outcome::Written
    );
}

#[tokio::test]
async fn a_leaf_set_with_the_name_of_its_ca_is_compared_by_it() {
    let server = Server::start().await;
    let root = authority("root");
    let stored = json!({"certificate": root.certificate, "private_key": root.private_key});
    server
        .set("/root", "certificate", stored.clone())
        .await
        .expect(200);
    let leaf = root.sign_leaf("leaf");
    let value = json!({"certificate": leaf.certificate, "ca_name": "/root"});
    let parameters = json!({"common_name": "leaf", "ca": "/root", "duration": 400});

    let set = server
        .set("/a", "certificate", value.clone())
        .await
        .expect(200)
        .json();
    assert_eq!(
        converge_from(&server, &set, "certificate", &parameters).await,
        Outcome::Kept
    );

    server.set("/root", "certificate", stored).await.expect(200);
    assert_eq!(
        converge_from(&server, &set, "certificate", &parameters).await,
        Outcome::Kept
    );

    let renewed = root.renewed_as("root");
    let renewed = json!({"certificate": renewed.certificate, "private_key": renewed.private_key});
    server
        .set("/root", "certificate", renewed)
        .await
        .expect(200);
    assert_eq!(
        converge_from(&server, &set, "certificate", &parameters).await,
        Outcome::Written
    );
}

#[tokio::test]
async fn a_leaf_set_with_a_raw_ca_matches_any_ca_name() {
    let server = Server::start().await;
    let root = authority("root");
    let stored = json!({"certificate": root.certificate, "private_key": root.private_key});
    server.set("/root", "certificate", stored).await.expect(200);
    let leaf = root.sign_leaf("leaf");
    let value = json!({"certificate": leaf.certificate, "ca": root.certificate});
    let set = server
        .set("/a", "certificate", value)
        .await
        .expect(200)
        .json();
    let parameters = json!({"common_name": "leaf", "ca": "/root", "duration": 400});
    assert_eq!(
        converge_from(&server, &set, "certificate", &parameters).await,
        Outcome::Kept
    );
}

#[tokio::test]
async fn a_transitional_ca_version_adds_a_version_once_promoted() {
    let server = Server::start().await;
    let root = json!({"common_name": "root", "is_ca": true, "key_type": "ecdsa-p256"});
    let root = Certificate::generate(&server, "/root", root).await;
    let parameters = json!({"common_name": "leaf", "ca": "/root", "key_type": "ecdsa-p256"});
    let answer = server.generate("/a", "certificate", parameters.clone());
    let made = answer.await.expect(200).json();
    let first = root.versions().await[0]["id"].clone();
    let body = json!({"set_as_transitional": true});
    root.regenerate(body).await.expect(200);
    let became = converge_from(&server, &made, "certificate", &parameters).await;
    assert_eq!(became, Outcome::Kept);
    root.move_transitional(first).await.expect(200);
    let became = converge_from(&server, &made, "certificate", &parameters).await;
    assert_eq!(became, Outcome::Written);
    let renewed = server.versions("/a").await[0].clone();
    root.move_transitional(Value::Null).await.expect(200);
    let became = converge_from(&server, &renewed, "certificate", &parameters).await;
    assert_eq!(became, Outcome::Kept);
}
