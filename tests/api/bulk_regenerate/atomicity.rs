//! Atomicity.

use keywright_harness::{Options, Server};
use serde_json::json;

use super::{authority, begin, endless_leaves, leaf, leaves, names, patient};
use crate::{given, made_elsewhere};

#[tokio::test]
async fn a_kill_during_bulk_regeneration_changes_nothing() {
    let server = Server::start_with(&patient()).await;
    let root = made_elsewhere::authority("root");
    let value = json!({"certificate": root.certificate, "private_key": root.private_key});
    given::set(&server, "/root", "certificate", value).await;
    let mut expected = Vec::new();
    for (middle, count) in [("/a", 64), ("/b", 64), ("/c", 69)] {
        authority(&server, middle, Some("/root")).await;
        expected.push(middle.to_owned());
        expected.extend(leaves(&server, middle, given::QUICK_KEY, count).await);
    }
    expected.sort();
    assert_eq!(expected.len(), 200);
    // They take so long that the regeneration never completes before the kill.
    let endless = endless_leaves(&server, "/root", &root).await;
    let before = given::everything(&server).await;
    let bulk = begin(&server, "/root", 5).await;
    let directory = server.kill();
    assert!(bulk.await.is_ok_and(|answer| answer.is_err()));
    let server = Server::start_in(directory, &Options::default()).await;
    assert_eq!(given::everything(&server).await, before);
    for name in &endless {
        server
            .delete(&format!("/api/v1/data?name={name}"))
            .await
            .expect(204);
    }
    let before = given::everything(&server).await;
    let answer = server.bulk_regenerate("/root").await;
    assert_eq!(names(&answer), expected);
    let after = given::everything(&server).await;
    assert_eq!(after.len(), before.len() + expected.len());
}

#[tokio::test]
async fn a_failing_certificate_is_named_and_nothing_is_written() {
    let server = Server::start().await;
    authority(&server, "/root", None).await;
    authority(&server, "/middle", Some("/root")).await;
    for name in ["/a", "/stuck", "/z"] {
        leaf(&server, name, "/middle").await;
    }
    let elsewhere = made_elsewhere::authority("elsewhere");
    let stuck = elsewhere.sign_leaf("stuck");
    let value = json!({"certificate": stuck.certificate, "ca": elsewhere.certificate});
    given::set(&server, "/stuck", "certificate", value).await;
    let before = given::everything(&server).await;
    let answer = server.bulk_regenerate("/root").await;
    let error = answer.expect(400).error();
    assert!(error.contains("/stuck"), "{error}");
    assert_eq!(given::everything(&server).await, before);
}

#[tokio::test]
async fn certificates_whose_ca_cannot_sign_are_named() {
    let server = Server::start().await;
    authority(&server, "/root", None).await;
    leaf(&server, "/leaf", "/root").await;
    let without_key = json!({"certificate": made_elsewhere::authority("root").certificate});
    given::set(&server, "/root", "certificate", without_key).await;
    let answer = server.bulk_regenerate("/root").await;
    let error = answer.expect(400).error();
    assert!(error.contains("/leaf"), "{error}");
    server.delete("/api/v1/data?name=/root").await.expect(204);
    let answer = server.bulk_regenerate("/root").await;
    let error = answer.expect(404).error();
    assert!(error.contains("/leaf"), "{error}");
    assert_eq!(given::versions(&server, "/leaf").await.len(), 1);
}
