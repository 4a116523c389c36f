//! Set certificates.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test ends when what it needs is not there"
)]

use keywright_harness::Server;
use serde_json::{Value, json};

use crate::{
    keys::with_certificate,
    made_elsewhere::{
        DURATION_DAYS, MadeElsewhere, authority, authority_for_hours, self_signed_leaf,
    },
};

async fn set(server: &Server, name: &str, value: Value) {
    server.set(name, "certificate", value).await.expect(200);
}

#[track_caller]
fn assert_made_like(version: &Value, original: &MadeElsewhere) {
    assert_eq!(version["generated"], true);
    assert_eq!(version["transitional"], false);
    assert_eq!(version["duration_used"], DURATION_DAYS);
    with_certificate(&original.certificate, |original| {
        with_certificate(version["value"]["certificate"].as_str().unwrap(), |made| {
            assert_eq!(made.subject().as_raw(), original.subject().as_raw());
            assert_eq!(made.is_ca(), original.is_ca());
            let usages = |certificate: &x509_parser::certificate::X509Certificate<'_>| {
                certificate
                    .key_usage()
                    .unwrap()
                    .map(|usage| usage.value.flags)
            };
            assert_eq!(usages(made), usages(original));
            assert_ne!(made.public_key().raw, original.public_key().raw);
        });
    });
}

#[tokio::test]
async fn a_self_signed_certificate_is_regenerated_from_its_contents() {
    let server = Server::start().await;
    let (root, leaf) = (authority("root"), self_signed_leaf("leaf"));
    for (name, original) in [("/root", &root), ("/leaf", &leaf)] {
        set(&server, name, json!({"certificate": original.certificate})).await;
        let version = server.regenerate(name).await.expect(200).json();
        assert_made_like(&version, original);
        assert_eq!(version["self_signed"], true, "{name}");
        assert_eq!(
            version["value"]["ca"], version["value"]["certificate"],
            "{name}"
        );
    }
}

#[tokio::test]
async fn a_certificate_with_a_ca_name_is_signed_by_that_ca() {
    let server = Server::start().await;
    let root = authority("root");
    let stored = json!({"certificate": root.certificate, "private_key": root.private_key});
    set(&server, "/root", stored).await;
    for (name, original) in [
        ("/leaf", root.sign_leaf("leaf")),
        ("/middle", root.sign_authority("middle")),
    ] {
        let value = json!({"certificate": original.certificate, "ca_name": "root"});
        set(&server, name, value).await;
        let version = server.regenerate(name).await.expect(200).json();
        assert_made_like(&version, &original);
        assert_eq!(version["value"]["ca"], root.certificate);
    }
}

#[tokio::test]
async fn a_regenerated_certificate_can_be_regenerated_again() {
    let server = Server::start().await;
    let root = authority("root");
    let stored = json!({"certificate": root.certificate, "private_key": root.private_key});
    set(&server, "/root", stored).await;
    let leaf = root.sign_leaf("leaf");
    let value = json!({"certificate": leaf.certificate, "ca_name": "/root"});
    set(&server, "/leaf", value).await;
    server.regenerate("/leaf").await.expect(200);
    let again = server.regenerate("/leaf").await.expect(200).json();
    assert_made_like(&again, &leaf);
}

#[tokio::test]
async fn a_certificate_whose_ca_has_no_known_name_is_400() {
    let server = Server::start().await;
    let root = authority("root");
    let leaf = root.sign_leaf("leaf");
    for value in [
        json!({"certificate": leaf.certificate, "ca": root.certificate}),
        json!({"certificate": leaf.certificate}),
    ] {
        set(&server, "/leaf", value).await;
        server.regenerate("/leaf").await.expect(400).error();
    }
    assert_eq!(server.versions("/leaf").await.len(), 2);
}

#[tokio::test]
async fn a_credential_without_a_certificate_is_400() {
    let server = Server::start().await;
    let root = authority("root");
    for value in [
        json!({"ca": root.certificate}),
        json!({"private_key": root.private_key}),
    ] {
        set(&server, "/a", value).await;
        server.regenerate("/a").await.expect(400).error();
    }
}

#[tokio::test]
async fn a_certificate_whose_ca_has_no_private_key_is_400() {
    let server = Server::start().await;
    let root = authority("root");
    set(&server, "/root", json!({"certificate": root.certificate})).await;
    let value = json!({"certificate": root.sign_leaf("leaf").certificate, "ca_name": "/root"});
    set(&server, "/leaf", value).await;
    server.regenerate("/leaf").await.expect(400).error();
}

#[tokio::test]
async fn the_duration_is_the_whole_days_of_validity() {
    let server = Server::start().await;
    for (hours, days) in [(47, 1), (48, 2), (71, 2), (24 * 400 + 23, 400)] {
        let root = authority_for_hours("root", hours);
        set(&server, "/a", json!({"certificate": root.certificate})).await;
        let version = server.regenerate("/a").await.expect(200).json();
        assert_eq!(version["duration_used"], days, "{hours}");
        with_certificate(version["value"]["certificate"].as_str().unwrap(), |made| {
            let validity = made.validity();
            let seconds = validity.not_after.timestamp() - validity.not_before.timestamp();
            assert_eq!(seconds, days * 86_400, "{hours}");
        });
    }
}

#[tokio::test]
async fn a_ca_signed_by_its_older_version_is_signed_by_its_active_one() {
    let server = Server::start().await;
    let old = authority("root");
    let stored = json!({"certificate": old.certificate, "private_key": old.private_key});
    set(&server, "/root", stored).await;
    let new = old.sign_authority("root");
    let value = json!({
        "certificate": new.certificate, "private_key": new.private_key, "ca_name": "/root",
    });
    set(&server, "/root", value).await;
    let version = server.regenerate("/root").await.expect(200).json();
    assert_made_like(&version, &new);
    assert_eq!(version["self_signed"], false);
    assert_eq!(version["value"]["ca"], new.certificate);
}
