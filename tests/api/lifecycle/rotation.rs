//! An authority is replaced while a TLS server goes on using a certificate that it signed. Real connections show which
//! clients can reach that server at each step.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends when what it needs is not there"
)]

use keywright_harness::{Options, SERVER_NAME, Server, connects, member};
use serde_json::{Value, json};

use crate::{certificates::Certificate, given};

#[tokio::test]
async fn an_authority_is_replaced_and_who_trusts_both_versions_connects_at_every_step() {
    let server = Server::start().await;
    let (root, leaf) = root_and_leaf(&server).await;
    let old = newest(&root).await;

    // (a) The authority gets a new version, which is transitional: the old one goes on signing.
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
    // The server gets one that the new version signed: who trusts only the old one is shut out.
    leaf.regenerate(json!({})).await.expect(200);
    let by_new = ["new", "both", "current"];
    assert_eq!(reached().await, by_new);

    // (c) The flag goes: the old version is no longer handed out.
    root.move_transitional(Value::Null).await.expect(200);
    assert_eq!(root.current().await.len(), 1);
    assert_eq!(reached().await, by_new);
    leaf.regenerate(json!({})).await.expect(200);
    assert_eq!(reached().await, by_new);
}

#[tokio::test]
async fn leaves_that_are_renewed_before_the_flag_moves_shut_out_who_trusts_only_the_new_version() {
    let server = Server::start().await;
    let (root, leaf) = root_and_leaf(&server).await;
    let body = json!({"set_as_transitional": true});
    let new = root.regenerate(body).await.expect(200).json();
    let allowed = json!({"allow_transitional_parent_to_sign": true});
    for (body, is_reached) in [(json!({}), false), (allowed, true)] {
        let renewed = leaf.regenerate(body.clone()).await.expect(200).json();
        let trusted = member(&new, "certificate");
        assert_eq!(connects(&renewed, trusted), is_reached, "{body}");
    }
}

/// Servers and clients in the field are brought up to date one after the other: after each step some have what the step
/// made, and others still what they had before it.
#[tokio::test]
async fn with_both_authorities_in_ca_no_handshake_fails_from_the_first_step_to_the_last() {
    let concatenated = Options::default().extra("\n[certificates]\nconcatenate_cas = true");
    let server = Server::start_with(&concatenated).await;
    let (root, leaf) = root_and_leaf(&server).await;
    let old = given::id(&newest(&root).await);
    let start = in_use(&leaf).await;
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
    let trusted = steps.map(|leaf| member(leaf, "ca").matches("BEGIN CERTIFICATE").count());
    assert_eq!(trusted, [1, 2, 2, 2, 1]);
    let old_alone = member(&start, "ca");
    let reached_by_old_alone = steps.map(|leaf| connects(leaf, old_alone));
    assert_eq!(reached_by_old_alone, [true, true, true, false, false]);
}

/// Asserts that after a step clients that trust what `ca` of the leaf says now and clients that trust what it said before
/// connect to servers with its certificate of now and to servers with that of before. Returns the leaf as it is now.
async fn step(step: &str, leaf: &Certificate<'_>, before: &Value) -> Value {
    let now = in_use(leaf).await;
    for (presented, server) in [("before", before), ("now", &now)] {
        for (trusted, client) in [("before", before), ("now", &now)] {
            assert!(
                connects(server, member(client, "ca")),
                "{step}: the server has the certificate of {presented}, the client the authorities of {trusted}"
            );
        }
    }
    now
}

/// Which clients reach the server with the newest version of the leaf.
///
/// The first trusts nothing but the old version of the authority, the second nothing but the new one. The third trusts
/// both: it was given them when there were both, and keeps them. The last is given at every step what the authority's
/// versions in use and in transition are just then.
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
        let trusted: Vec<_> = authorities.map(|one| member(one, "certificate")).collect();
        connects(&leaf, &trusted.join("\n"))
    });
    reached.map(|(client, _)| *client).collect()
}

/// An authority and a leaf that it signed, with the keys that they get when nothing is said about them.
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

/// The version that is not transitional.
async fn in_use(certificate: &Certificate<'_>) -> Value {
    certificate.current().await.first().unwrap().clone()
}
