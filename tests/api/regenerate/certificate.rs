//! Generated and set certificates.

use keywright_harness::Server;
use serde_json::{Value, json};

use crate::{
    certificates::Certificate,
    external_certificates::{Signing, authority, authority_changed, authority_for_hours},
    keys::{certificate_days, certificate_key_bits, with_certificate},
};

// Generated certificates.

/// The contents that regeneration must not change.
#[derive(Debug, PartialEq, Eq)]
struct KeptParts {
    subject: Vec<u8>,
    /// The extensions except key identifiers, by OID.
    extensions: Vec<(String, Vec<u8>)>,
    key_length_bits: usize,
    duration_days: i64,
}

fn kept_parts(version: &Value) -> KeptParts {
    let pem = version["value"]["certificate"].as_str().unwrap();
    let key_length_bits = certificate_key_bits(pem);
    with_certificate(pem, |certificate| {
        let extensions = certificate.extensions().iter();
        let extensions = extensions
            .map(|extension| (extension.oid.to_id_string(), extension.value.to_vec()))
            .filter(|(oid, _)| !["2.5.29.14", "2.5.29.35"].contains(&oid.as_str()))
            .collect();
        KeptParts {
            subject: certificate.subject().as_raw().to_vec(),
            extensions,
            key_length_bits,
            duration_days: certificate_days(pem),
        }
    })
}

#[tokio::test]
async fn everything_but_key_serial_and_dates_is_kept() {
    let server = Server::reused().await;
    let root = json!({
        "common_name": "Wurzel, +O=x", "country": "AT", "is_ca": true, "duration": 30,
        "key_usage": ["key_cert_sign"],
    });
    server.generated("/root", "certificate", root).await;
    let leaf = json!({
        "common_name": "leaf", "organization": "Example", "organization_unit": "Unit",
        "locality": "Graz", "state": "Styria", "country": "AT",
        "alternative_names": ["b.example.org", "10.0.0.1", "*.a.example.org"],
        "key_usage": ["key_agreement", "digital_signature"],
        "extended_key_usage": ["timestamping", "client_auth"],
        "key_length": 3072, "duration": 17, "ca": "/root",
    });
    server.generated("/leaf", "certificate", leaf).await;
    let own = json!({"common_name": "own", "self_sign": true});
    server.generated("/own", "certificate", own).await;
    for name in ["/root", "/leaf", "/own"] {
        let before = server.versions(name).await[0].clone();
        let after = server.regenerated(name).await;
        assert_eq!(kept_parts(&after), kept_parts(&before), "{name}");
        let [old, new] = [&before, &after].map(|version| &version["value"]["private_key"]);
        assert_ne!(old, new);
        for mark in "certificate_authority self_signed generated transitional".split(' ') {
            assert_eq!(after[mark], before[mark], "{name} {mark}");
        }
    }
}

#[tokio::test]
async fn the_newest_version_is_regenerated_even_if_transitional() {
    let server = Server::reused().await;
    let parameters =
        json!({"common_name": "a", "is_ca": true, "key_type": "ecdsa-p256", "duration": 17});
    let certificate = Certificate::generate(&server, "/a", parameters).await;
    let body = json!({"set_as_transitional": true, "duration": 30});
    let transitional = certificate.regenerate(body).await.expect(200).json();
    let version = server.regenerated("/a").await;
    assert_eq!(version["duration_used"], 30);
    assert_eq!(version["transitional"], false);
    let current = certificate.current().await;
    assert_eq!(current[0]["id"], version["id"]);
    assert_eq!(current[1]["id"], transitional["id"]);
}

// Set certificates.

#[tokio::test]
async fn a_certificate_whose_ca_has_no_known_name_is_400() {
    let server = Server::reused().await;
    let root = authority("root");
    let leaf = root.sign_leaf("leaf");
    let with_ca = json!({"certificate": leaf.certificate, "ca": root.certificate});
    for value in [with_ca, leaf.public()] {
        server.stored("/leaf", "certificate", value).await;
        server.regenerate("/leaf").await.expect(400).error();
    }
    assert_eq!(server.versions("/leaf").await.len(), 2);
}

#[tokio::test]
async fn a_certificate_that_is_valid_before_1970_is_400() {
    let server = Server::reused().await;
    let old = authority_changed("old", |parameters| {
        parameters.not_before = rcgen::date_time_ymd(1969, 12, 31);
    });
    server.stored("/old", "certificate", old.value()).await;
    let refused = server.regenerate("/old").await;
    refused.expect_error(400, "valid from 1970 or later");
}

#[tokio::test]
async fn a_credential_without_a_certificate_is_400() {
    let server = Server::reused().await;
    let root = authority("root");
    for value in [
        json!({"ca": root.certificate}),
        json!({"private_key": root.private_key}),
    ] {
        server.stored("/a", "certificate", value).await;
        server.regenerate("/a").await.expect(400).error();
    }
}

#[tokio::test]
async fn a_certificate_whose_ca_has_no_private_key_is_400() {
    let server = Server::reused().await;
    let root = authority("root");
    server.stored("/root", "certificate", root.public()).await;
    let value = json!({"certificate": root.sign_leaf("leaf").certificate, "ca_name": "/root"});
    server.stored("/leaf", "certificate", value).await;
    server.regenerate("/leaf").await.expect(400).error();
}

#[tokio::test]
async fn the_duration_is_the_whole_days_of_validity() {
    let server = Server::reused().await;
    for (hours, days) in [(47, 1), (48, 2), (71, 2), (24 * 400 + 23, 400)] {
        let root = authority_for_hours("root", hours);
        server.stored("/a", "certificate", root.public()).await;
        let version = server.regenerated("/a").await;
        assert_eq!(version["duration_used"], days, "{hours}");
        with_certificate(version["value"]["certificate"].as_str().unwrap(), |made| {
            let validity = made.validity();
            let seconds = validity.not_after.timestamp() - validity.not_before.timestamp();
            assert_eq!(seconds, days * 86_400, "{hours}");
        });
    }
}

#[tokio::test]
async fn a_ca_signed_by_its_old_version_is_renewed_by_its_active_one() {
    let server = Server::reused().await;
    let old = authority("root");
    server.stored("/root", "certificate", old.value()).await;
    let new = old.sign_authority("root");
    let value = json!({
        "certificate": new.certificate, "private_key": new.private_key, "ca_name": "/root",
    });
    server.stored("/root", "certificate", value).await;
    let version = server.regenerated("/root").await;
    assert_eq!(version["self_signed"], false);
    assert_eq!(version["value"]["ca"], new.certificate);
}
