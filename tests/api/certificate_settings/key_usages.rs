//! Default key usages of CAs.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends when what it needs is not there"
)]

use keywright_harness::Server;
use serde_json::{Value, json};

use super::{certificate, server};
use crate::{
    certificates::Certificate,
    given::{self, generate_certificate},
    keys::with_certificate,
    made_elsewhere,
};

const ON: &str = "enable_default_ca_key_usages = true";

/// The key usage of a version's certificate as text; empty if there is none.
fn usage(version: &Value) -> String {
    with_certificate(&certificate(version), |certificate| {
        let usage = certificate.key_usage().unwrap();
        usage
            .map(|usage| usage.value.to_string())
            .unwrap_or_default()
    })
}

const DEFAULT: &str = "Key Cert Sign, CRL Sign";

#[tokio::test]
async fn a_ca_without_requested_usages_gets_the_defaults() {
    let server = server(ON).await;
    for (name, parameters, expected) in [
        ("/root", json!({"is_ca": true}), DEFAULT),
        ("/middle", json!({"is_ca": true, "ca": "/root"}), DEFAULT),
        ("/empty", json!({"is_ca": true, "key_usage": []}), DEFAULT),
        (
            "/asked",
            json!({"is_ca": true, "key_usage": ["digital_signature"]}),
            "Digital Signature",
        ),
        ("/leaf", json!({"ca": "/root"}), ""),
    ] {
        let version = generate_certificate(&server, name, parameters).await;
        assert_eq!(usage(&version), expected, "{name}");
    }
}

#[tokio::test]
async fn converge_compares_with_the_defaults_applied() {
    let server = server(ON).await;
    let without = json!({"is_ca": true});
    let first = generate_certificate(&server, "/root", without.clone()).await;
    let mut with = without.clone();
    with["key_usage"] = json!(["crl_sign", "key_cert_sign"]);
    for parameters in [without, with] {
        let kept = generate_certificate(&server, "/root", parameters).await;
        assert_eq!(kept["id"], first["id"]);
    }
    let other = json!({"is_ca": true, "key_usage": ["crl_sign"]});
    let written = generate_certificate(&server, "/root", other).await;
    assert_ne!(written["id"], first["id"]);
}

#[tokio::test]
async fn regenerating_a_set_ca_adds_the_defaults() {
    let off = Server::start().await;
    let root = json!({"is_ca": true});
    let generated = generate_certificate(&off, "/generated", root).await;
    assert_eq!(usage(&generated), "");
    given::set(&off, "/set", "certificate", generated["value"].clone()).await;
    let elsewhere = made_elsewhere::authority("elsewhere");
    let value = json!({"certificate": elsewhere.certificate});
    given::set(&off, "/elsewhere", "certificate", value).await;
    let server = Server::start_in(off.stop().await, &super::options(ON)).await;
    for name in ["/generated", "/set", "/elsewhere"] {
        let version = server.regenerate(name).await.expect(200).json();
        assert_eq!(usage(&version), DEFAULT, "{name}");
    }
}

#[tokio::test]
async fn regenerating_by_id_in_bulk_and_through_data_adds_them_too() {
    let off = Server::start().await;
    for (name, ca) in [("/root", ""), ("/middle", "/root"), ("/data", "/root")] {
        let parameters = json!({
            "common_name": name, "is_ca": true, "ca": ca, "key_type": "ecdsa-p256",
        });
        given::generate(&off, name, "certificate", parameters).await;
    }
    let server = Server::start_in(off.stop().await, &super::options(ON)).await;
    let root = Certificate::named(&server, "/root").await;
    let longer = json!({"duration": 30});
    let root = root.regenerate(longer).await.expect(200).json();
    assert_eq!(usage(&root), DEFAULT);
    let body = json!({"name": "/data", "regenerate": true});
    let version = server.post("/api/v1/data", body).await.expect(200).json();
    assert_eq!(usage(&version), DEFAULT);
    server.bulk_regenerate("/root").await.expect(200);
    let versions = given::versions(&server, "/middle").await;
    let usages: Vec<String> = versions.iter().map(usage).collect();
    assert_eq!(usages, [DEFAULT, ""]);
}

#[tokio::test]
async fn without_the_setting_a_ca_has_only_the_requested_usages() {
    let server = Server::start().await;
    let parameters = json!({"is_ca": true});
    let version = generate_certificate(&server, "/root", parameters).await;
    assert_eq!(usage(&version), "");
}
