//! Concurrent writes during a bulk regeneration, through another server of the same database, while the first is
//! stopped.

use keywright_harness::Server;
use serde_json::json;

use super::{Held, SLOW_KEY, authority, leaf, leaves, patient};
use crate::{certificates::assert_signed_by, given, made_elsewhere};

/// Enough leaves that the regeneration is rarely missed and restarted.
const LEAVES: usize = 8;

#[tokio::test]
async fn a_certificate_set_meanwhile_is_regenerated_from_that_value() {
    let server = Server::start_with(&patient()).await;
    let other = server.start_another().await;
    let root = made_elsewhere::authority("root");
    let value = json!({"certificate": root.certificate, "private_key": root.private_key});
    given::set(&server, "/root", "certificate", value).await;
    leaf(&server, "/changed", "/root").await;
    let others = leaves(&server, "/root", SLOW_KEY, LEAVES).await;
    let replacement = root.sign_leaf("replacement");
    let value = json!({"certificate": replacement.certificate, "ca_name": "/root"});
    let held = Held::begin(&server, "/root", 1 + LEAVES).await;
    let before = given::versions(&other, "/changed").await.len();
    let set = given::set(&other, "/changed", "certificate", value).await;
    assert_eq!(held.release().await.status(), 200);
    let versions = given::versions(&server, "/changed").await;
    assert_eq!(versions.len(), before + 2);
    assert_eq!(versions[1]["id"], set["id"]);
    for name in &others {
        let versions = given::versions(&server, name).await.len();
        assert_eq!(versions, before + 1, "{name}");
    }
}

#[tokio::test]
async fn a_ca_set_meanwhile_signs_all_certificates() {
    let server = Server::start_with(&patient()).await;
    let other = server.start_another().await;
    authority(&server, "/root", None).await;
    authority(&server, "/middle", Some("/root")).await;
    leaves(&server, "/middle", given::QUICK_KEY, 2).await;
    let others = leaves(&server, "/root", SLOW_KEY, LEAVES).await;
    let root = made_elsewhere::authority("root");
    let value = json!({"certificate": root.certificate, "private_key": root.private_key});
    let held = Held::begin(&server, "/root", 3 + LEAVES).await;
    let before = given::versions(&other, "/middle").await.len();
    let renewed = given::set(&other, "/root", "certificate", value).await;
    assert_eq!(held.release().await.status(), 200);
    let middle = given::newest(&server, "/middle").await;
    assert_signed_by(&middle, &renewed);
    for name in &others {
        let versions = given::versions(&server, name).await;
        assert_eq!(versions.len(), before + 1, "{name}");
        assert_signed_by(&versions[0], &renewed);
    }
    for name in ["/middle/leaf/0", "/middle/leaf/1"] {
        assert_signed_by(&given::newest(&server, name).await, &middle);
    }
}

#[tokio::test]
async fn a_certificate_deleted_meanwhile_is_skipped() {
    let server = Server::start_with(&patient()).await;
    let other = server.start_another().await;
    authority(&server, "/root", None).await;
    leaf(&server, "/deleted", "/root").await;
    let others = leaves(&server, "/root", SLOW_KEY, LEAVES).await;
    let held = Held::begin(&server, "/root", 1 + LEAVES).await;
    other.delete("/api/v1/data?name=/deleted").await.expect(204);
    let answer = held.release().await;
    assert_eq!(answer.status(), 200);
    let text = answer.text().await.unwrap();
    assert!(!text.contains("/deleted"), "{text}");
    assert!(others.iter().all(|name| text.contains(name)), "{text}");
    server.get("/api/v1/data?name=/deleted").await.expect(404);
}

#[tokio::test]
async fn a_certificate_signed_meanwhile_is_regenerated_too() {
    let server = Server::start_with(&patient()).await;
    let other = server.start_another().await;
    authority(&server, "/root", None).await;
    authority(&server, "/middle", Some("/root")).await;
    leaves(&server, "/root", SLOW_KEY, LEAVES).await;
    let held = Held::begin(&server, "/root", 1 + LEAVES).await;
    for number in 0..2 {
        leaf(&other, &format!("/late/{number}"), "/middle").await;
    }
    assert_eq!(held.release().await.status(), 200);
    let middle = given::newest(&server, "/middle").await;
    for number in 0..2 {
        let late = given::newest(&server, &format!("/late/{number}")).await;
        assert_signed_by(&late, &middle);
    }
}
