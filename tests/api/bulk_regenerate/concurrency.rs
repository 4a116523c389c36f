//! Atomicity, concurrent writes, and the queue of guest calls.

use keywright_harness::{Options, Server, TestCertificate, Text, until};
use serde_json::json;

use super::{
    BULK_REGENERATE, PausedRegeneration, begin, generated_count, leaves, names, patient,
    slow_leaves,
};
use crate::{
    certificates::assert_signed_by,
    external_certificates::{self, Signing},
};

#[tokio::test]
async fn a_kill_during_bulk_regeneration_changes_nothing() {
    let server = Server::start_with(&patient()).await;
    let root = external_certificates::authority("root");
    server.stored("/root", "certificate", root.value()).await;
    let mut expected = Vec::new();
    for (middle, count) in [("/a", 64), ("/b", 64), ("/c", 69)] {
        server.generate_authority(middle, Some("/root")).await;
        expected.push(middle.to_owned());
        expected.extend(leaves(&server, middle, count).await);
    }
    expected.sort();
    assert_eq!(expected.len(), 200);
    // These leaves take so long that the regeneration never completes before the kill.
    let endless = slow_leaves(&server, &root, ENDLESS).await;
    let before = server.all_versions().await;
    let bulk = begin(&server, "/root", 5).await;
    let directory = server.kill();
    assert!(bulk.await.is_ok_and(|response| response.is_err()));
    let server = Server::start_in(directory, &Options::default()).await;
    assert_eq!(server.all_versions().await, before);
    for name in &endless {
        let response = server.delete(&format!("/api/v1/data?name={name}")).await;
        response.expect(204);
    }
    let before = server.all_versions().await;
    let response = server.bulk_regenerate("/root").await;
    assert_eq!(names(&response), expected);
    let after = server.all_versions().await;
    assert_eq!(after.len(), before.len() + expected.len());
}

/// A number of slow leaves whose regeneration takes far longer than the rest of a test.
const ENDLESS: usize = 60;

// Concurrent writes during a bulk regeneration, through another server of the same database, while the first
// server is stopped.

/// The number of slow leaves. With fewer, the server would often be stopped too late, and the test would have to retry.
const LEAVES: usize = 4;

/// Returns two servers of one database, and the imported CA `/root` in it.
async fn two_servers_with_root() -> (Server, Server, TestCertificate) {
    let server = Server::start_with(&patient()).await;
    let other = server.start_another().await;
    let root = external_certificates::authority("root");
    server.stored("/root", "certificate", root.value()).await;
    (server, other, root)
}

#[tokio::test]
async fn only_the_end_of_a_used_permission_fails_a_run() {
    let (server, other, root) = two_servers_with_root().await;
    slow_leaves(&server, &root, LEAVES).await;
    let rotator = server.as_client("rotator").await;
    server.grant("/root", rotator.actor(), &["read"]).await;
    let elsewhere = server.grant("/elsewhere", rotator.actor(), &["read"]).await;
    let used = server.grant("/slow/*", rotator.actor(), &["write"]).await;
    for (revoked, status) in [(elsewhere, 200), (used, 503)] {
        let before = generated_count(&server);
        let rotator = rotator.clone();
        let body = json!({"signed_by": "/root"});
        let bulk = tokio::spawn(async move { rotator.post(BULK_REGENERATE, body).await });
        until("generated value", async || {
            generated_count(&server) > before
        })
        .await;
        other.revoke(&revoked).await;
        bulk.await.unwrap().expect(status);
    }
}

#[tokio::test]
async fn a_certificate_set_during_a_run_is_regenerated_from_its_value() {
    let (server, other, root) = two_servers_with_root().await;
    server.generate_leaf("/changed", "/root").await;
    let others = slow_leaves(&server, &root, LEAVES).await;
    let replacement = root.sign_leaf("replacement");
    let value = json!({"certificate": replacement.certificate, "ca_name": "/root"});
    let paused = PausedRegeneration::begin(&server, "/root", 1 + LEAVES).await;
    let before = other.versions("/changed").await.len();
    let set = other.stored("/changed", "certificate", value).await;
    assert_eq!(paused.resume().await.status(), 200);
    let versions = server.versions("/changed").await;
    assert_eq!(versions.len(), before + 2);
    assert_eq!(versions[1]["id"], set["id"]);
    for name in &others {
        let versions = server.versions(name).await.len();
        assert_eq!(versions, before + 1, "{name}");
    }
}

#[tokio::test]
async fn a_ca_set_during_a_run_signs_all_certificates() {
    let (server, other, root) = two_servers_with_root().await;
    server.generate_authority("/middle", Some("/root")).await;
    leaves(&server, "/middle", 2).await;
    let others = slow_leaves(&server, &root, LEAVES).await;
    let replacement = external_certificates::authority("root");
    let paused = PausedRegeneration::begin(&server, "/root", 3 + LEAVES).await;
    let before = other.versions("/middle").await.len();
    let renewed = other
        .stored("/root", "certificate", replacement.value())
        .await;
    assert_eq!(paused.resume().await.status(), 200);
    let middle = server.newest("/middle").await;
    assert_signed_by(&middle, &renewed);
    for name in &others {
        let versions = server.versions(name).await;
        assert_eq!(versions.len(), before + 1, "{name}");
        assert_signed_by(&versions[0], &renewed);
    }
    for name in ["/middle/leaf/0", "/middle/leaf/1"] {
        assert_signed_by(&server.newest(name).await, &middle);
    }
}

#[tokio::test]
async fn a_certificate_deleted_during_a_run_is_skipped() {
    let (server, other, root) = two_servers_with_root().await;
    server.generate_leaf("/deleted", "/root").await;
    let others = slow_leaves(&server, &root, LEAVES).await;
    let paused = PausedRegeneration::begin(&server, "/root", 1 + LEAVES).await;
    other.delete("/api/v1/data?name=/deleted").await.expect(204);
    let response = paused.resume().await;
    assert_eq!(response.status(), 200);
    let text = response.text().await.unwrap();
    text.assert_lacks("/deleted");
    assert!(others.iter().all(|name| text.contains(name)), "{text}");
    server.get("/api/v1/data?name=/deleted").await.expect(404);
}

#[tokio::test]
async fn a_certificate_signed_during_a_run_is_regenerated_too() {
    let (server, other, root) = two_servers_with_root().await;
    server.generate_authority("/middle", Some("/root")).await;
    slow_leaves(&server, &root, LEAVES).await;
    let paused = PausedRegeneration::begin(&server, "/root", 1 + LEAVES).await;
    for number in 0..2 {
        other
            .generate_leaf(&format!("/late/{number}"), "/middle")
            .await;
    }
    assert_eq!(paused.resume().await.status(), 200);
    let middle = server.newest("/middle").await;
    for number in 0..2 {
        let late = server.newest(&format!("/late/{number}")).await;
        assert_signed_by(&late, &middle);
    }
}

// The queue of guest calls: a bulk regeneration waits in it like other requests, and does not fill it.

#[tokio::test]
async fn more_certificates_than_the_queue_holds_are_regenerated() {
    let options = Options::default()
        .environment("KEYWRIGHT_PLUGINS__QUEUE_LENGTH", "1")
        .environment("KEYWRIGHT_PLUGINS__THREADS_PER_LANE", "2");
    let server = Server::start_with(&options).await;
    server.generate_authority("/root", None).await;
    for name in ["/a", "/b", "/c", "/d", "/e", "/f"] {
        server.generate_leaf(name, "/root").await;
    }
    let response = server.bulk_regenerate("/root").await;
    assert_eq!(names(&response).len(), 6);
}

#[tokio::test]
async fn other_requests_succeed_during_a_bulk_regeneration() {
    let options = patient()
        .environment("KEYWRIGHT_PLUGINS__QUEUE_LENGTH", "2")
        .environment("KEYWRIGHT_PLUGINS__THREADS_PER_LANE", "2");
    let server = Server::start_with(&options).await;
    let root = external_certificates::authority("root");
    server.stored("/root", "certificate", root.value()).await;
    slow_leaves(&server, &root, ENDLESS).await;
    let bulk = begin(&server, "/root", 2).await;
    for number in 0..3 {
        let name = format!("/password/{number}");
        server.generated(&name, "password", json!({})).await;
    }
    assert!(!bulk.is_finished());
}
