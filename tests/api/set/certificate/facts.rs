//! The response fields of a set certificate.

use chrono::DateTime;
use keywright_harness::Server;
use serde_json::{Value, json};

use super::VERSION_1;
use crate::{
    keys::with_certificate,
    made_elsewhere::{authority, self_signed_leaf},
};

async fn set(server: &Server, value: Value) -> Value {
    server
        .set("/a", "certificate", value)
        .await
        .expect(200)
        .json()
}

#[tokio::test]
async fn the_flags_are_read_from_the_certificate() {
    let server = Server::start().await;
    let root = authority("root");
    let namesake = root.sign_authority("root");
    let leaf = root.sign_leaf("leaf");
    let lone = self_signed_leaf("lone");
    for (what, certificate, is_authority, is_self_signed) in [
        ("a root", &root.certificate, true, true),
        (
            "an intermediate with the name of its issuer",
            &namesake.certificate,
            true,
            false,
        ),
        ("a leaf", &leaf.certificate, false, false),
        ("a leaf that signed itself", &lone.certificate, false, false),
    ] {
        let answer = set(&server, json!({"certificate": certificate})).await;
        assert_eq!(answer["certificate_authority"], is_authority, "{what}");
        assert_eq!(answer["self_signed"], is_self_signed, "{what}");
        assert_eq!(answer["generated"], false, "{what}");
        assert_eq!(answer["transitional"], false, "{what}");
        assert_eq!(answer["expiry_date"], "2027-02-05T00:00:00Z", "{what}");
    }
}

#[tokio::test]
async fn a_root_keeps_the_ca_that_was_sent() {
    let server = Server::start().await;
    let root = authority("root");
    let without = set(&server, json!({"certificate": root.certificate})).await;
    assert_eq!(without["value"]["ca"], Value::Null);
    let with = json!({"certificate": root.certificate, "ca": root.certificate});
    let with = set(&server, with).await;
    assert_eq!(with["value"]["ca"], root.certificate);
}

#[tokio::test]
async fn a_certificate_of_x509_version_1_is_accepted() {
    let server = Server::start().await;
    let answer = set(&server, json!({"certificate": VERSION_1})).await;
    assert_eq!(answer["certificate_authority"], false);
    assert_eq!(answer["self_signed"], false);
    let end = with_certificate(VERSION_1, |certificate| {
        certificate.validity().not_after.timestamp()
    });
    let expiry_date = DateTime::from_timestamp(end, 0).unwrap();
    let expiry_date = expiry_date.format("%Y-%m-%dT%H:%M:%SZ").to_string();
    assert_eq!(answer["expiry_date"], expiry_date);
}

#[tokio::test]
async fn a_set_certificate_has_no_generation_details() {
    let server = Server::start().await;
    let root = authority("root");
    let answer = set(&server, json!({"certificate": root.certificate})).await;
    for detail in [
        "duration_overridden",
        "duration_used",
        "key_length",
        "ca_name",
    ] {
        assert_eq!(answer.get(detail), None, "{detail}");
        assert_eq!(answer["value"].get(detail), None, "{detail}");
    }
}
