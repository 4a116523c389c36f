//! A CA rotation while a TLS server uses a certificate of that CA. Real connections show which clients can reach the
//! server at each step.

use keywright_harness::{Options, SERVER_NAME, Server, connects, field};
use serde_json::{Value, json};

use super::Certificate;
use crate::given;

#[tokio::test]
async fn clients_trusting_both_ca_versions_connect_at_every_step() {
    let server = Server::reused().await;
    let (root, leaf) = root_and_leaf(&server).await;
    let old = newest(&root).await;

    // (a) The CA gets a new, transitional version; the old one still signs.
    let body = json!({"set_as_transitional": true});
    let new = root.regenerate(body).await.expect(200).json();
    let reached = async || reached(&root, &leaf, &old, &new).await;
    let by_old = ["old", "both", "current"];
    assert_eq!(reached().await, by_old);
    leaf.regenerate(json!({})).await.expect(200);
    assert_eq!(reached().await, by_old);

    // (b) The flag moves to the old version: the new one signs from now on. The server still has its old certificate.
    let flagged = json!(given::id(&old));
    root.move_transitional(flagged).await.expect(200);
    assert_eq!(reached().await, by_old);
    // The server gets a leaf signed by the new version: clients that trust only the old one fail.
    leaf.regenerate(json!({})).await.expect(200);
    let by_new = ["new", "both", "current"];
    assert_eq!(reached().await, by_new);

    // (c) The flag is cleared: the old version is no longer returned.
    root.move_transitional(Value::Null).await.expect(200);
    assert_eq!(root.current().await.len(), 1);
    assert_eq!(reached().await, by_new);
    leaf.regenerate(json!({})).await.expect(200);
    assert_eq!(reached().await, by_new);
}

#[tokio::test]
async fn renewing_leaves_before_promotion_breaks_new_only_trust() {
    let server = Server::reused().await;
    let (root, leaf) = root_and_leaf(&server).await;
    let body = json!({"set_as_transitional": true});
    let new = root.regenerate(body).await.expect(200).json();
    let allowed = json!({"allow_transitional_parent_to_sign": true});
    for (body, is_reached) in [(json!({}), false), (allowed, true)] {
        let renewed = leaf.regenerate(body.clone()).await.expect(200).json();
        let trusted = field(&new, "certificate");
        assert_eq!(connects(&renewed, trusted), is_reached, "{body}");
    }
}

/// Servers and clients are updated one after the other: after each step, some have the new certificates, and others
/// still have the previous certificates.
#[tokio::test]
async fn with_concatenated_cas_no_handshake_fails_in_a_rotation() {
    let concatenated = Options::default().extra("\n[certificates]\nconcatenate_cas = true");
    let server = Server::start_with(&concatenated).await;
    let (root, leaf) = root_and_leaf(&server).await;
    let old = given::id(&newest(&root).await);
    let start = active_version(&leaf).await;
    let start = step("start", &leaf, &start).await;

    let body = json!({"set_as_transitional": true});
    root.regenerate(body).await.expect(200);
    let transitional = step("(a) the new version is transitional", &leaf, &start).await;

    root.move_transitional(json!(old)).await.expect(200);
    let moved = step("(b) the flag is on the old version", &leaf, &transitional).await;

    server.bulk_regenerate("/root").await.expect(200);
    let signed = step("(b2) the new version has signed", &leaf, &moved).await;

    root.move_transitional(Value::Null).await.expect(200);
    let cleared = step("(c) the flag is cleared", &leaf, &signed).await;

    let steps = [&start, &transitional, &moved, &signed, &cleared];
    let trusted = steps.map(|leaf| field(leaf, "ca").matches("BEGIN CERTIFICATE").count());
    assert_eq!(trusted, [1, 2, 2, 2, 1]);
    let old_alone = field(&start, "ca");
    let reached_by_old_alone = steps.map(|leaf| connects(leaf, old_alone));
    assert_eq!(reached_by_old_alone, [true, true, true, false, false]);
}

/// Asserts that after a step, clients with the leaf's current or previous `ca` connect to servers with its current or
/// previous certificate. Returns the current leaf.
async fn step(step: &str, leaf: &Certificate<'_>, before: &Value) -> Value {
    let now = active_version(leaf).await;
    for (presented, server) in [("before", before), ("now", &now)] {
        for (trusted, client) in [("before", before), ("now", &now)] {
            assert!(
                connects(server, field(client, "ca")),
                "{step}: certificate of the server: {presented}; CAs of the client: {trusted}"
            );
        }
    }
    now
}

/// Returns which clients reach a server with the newest version of the leaf. The first trusts only the old version of
/// the CA, the second only the new one. The third trusts both permanently. The last trusts the current active and
/// transitional versions.
async fn reached(
    root: &Certificate<'_>,
    leaf: &Certificate<'_>,
    old: &Value,
    new: &Value,
) -> Vec<&'static str> {
    let leaf = newest(leaf).await;
    let current = root.current().await;
    let clients = [
        ("old", vec![old]),
        ("new", vec![new]),
        ("both", vec![old, new]),
        ("current", current.iter().collect()),
    ];
    let reached = clients.iter().filter(|(_, authorities)| {
        let authorities = authorities.iter();
        let trusted: Vec<_> = authorities.map(|one| field(one, "certificate")).collect();
        connects(&leaf, &trusted.join("\n"))
    });
    reached.map(|(client, _)| *client).collect()
}

/// Generates a CA and a leaf signed by it, with keys of the default type.
async fn root_and_leaf(server: &Server) -> (Certificate<'_>, Certificate<'_>) {
    let root = json!({"is_ca": true, "key_type": "rsa"});
    let root = Certificate::generate(server, "/root", root).await;
    let leaf = json!({"ca": "/root", "alternative_names": [SERVER_NAME], "key_type": "rsa"});
    let leaf = Certificate::generate(server, "/leaf", leaf).await;
    (root, leaf)
}

async fn newest(certificate: &Certificate<'_>) -> Value {
    certificate.versions().await.first().unwrap().clone()
}

/// Returns the version that is not transitional.
async fn active_version(certificate: &Certificate<'_>) -> Value {
    certificate.current().await.first().unwrap().clone()
}
