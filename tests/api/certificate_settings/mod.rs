//! The section `certificates` of the configuration, which applies to all certificates.

mod concatenation;

use keywright_harness::{Options, ReusedServer, Server};
use serde_json::{Value, json};

use crate::{
    certificates::Certificate,
    external_certificates,
    keys::{certificate_days, with_certificate},
};

/// Starts a server with these lines in the section `certificates`.
async fn server(lines: &str) -> ReusedServer {
    Server::reused_with(&options(lines)).await
}

fn options(lines: &str) -> Options {
    Options::default().extra(&format!("\n[certificates]\n{lines}"))
}

/// Returns the validity of a version's certificate, in days.
fn days(version: &Value) -> i64 {
    certificate_days(&certificate(version))
}

/// Returns the field `ca` of a version's value.
fn ca(version: &Value) -> String {
    field(version, "ca")
}

/// Returns the field `certificate` of a version's value.
fn certificate(version: &Value) -> String {
    field(version, "certificate")
}

fn field(version: &Value, name: &str) -> String {
    let field = version.pointer(&format!("/value/{name}")).unwrap();
    field.as_str().unwrap().to_owned()
}

/// Returns the expected contents of the field `ca`: the certificate of the signing CA, then the certificate of the trusted CA.
fn both(signing: &str, trusted: &str) -> String {
    format!("{}\n{}\n", signing.trim(), trusted.trim())
}

const CONCATENATED: &str = "concatenate_cas = true";

#[tokio::test]
async fn a_minimum_may_be_3650_days() {
    let lines = "ca_minimum_duration_in_days = 3650\nleaf_minimum_duration_in_days = 3650";
    let server = server(lines).await;
    let own = server.issued("/own", json!({"self_sign": true})).await;
    assert_eq!(own["duration_used"], 3650);
}

// Minimum durations.

const MINIMUMS: &str = "ca_minimum_duration_in_days = 1000\nleaf_minimum_duration_in_days = 90";

#[track_caller]
fn assert_used(version: &Value, used: i64, is_overridden: bool) {
    assert_eq!(version["duration_used"], used);
    assert_eq!(version["duration_overridden"], is_overridden);
    assert_eq!(days(version), used);
}

#[tokio::test]
async fn a_raised_duration_is_reported_in_the_generate_response() {
    let server = server(MINIMUMS).await;
    let root = server.issued("/root", json!({"is_ca": true})).await;
    assert_used(&root, 1000, true);
    for (name, parameters, used, is_overridden) in [
        ("/a", json!({"ca": "/root", "duration": 30}), 90, true),
        ("/b", json!({"ca": "/root", "duration": 89}), 90, true),
        ("/c", json!({"ca": "/root", "duration": 90}), 90, false),
        ("/d", json!({"ca": "/root", "duration": 91}), 91, false),
        ("/e", json!({"self_sign": true, "duration": 1}), 90, true),
        ("/f", json!({"self_sign": true}), 365, false),
        (
            "/g",
            json!({"is_ca": true, "ca": "/root", "duration": 999}),
            1000,
            true,
        ),
        ("/h", json!({"is_ca": true, "duration": 1001}), 1001, false),
    ] {
        let version = server.issued(name, parameters).await;
        assert_used(&version, used, is_overridden);
    }
}

#[tokio::test]
async fn a_minimum_does_not_correct_an_invalid_duration() {
    let server = server(MINIMUMS).await;
    for duration in [0, -1, 3651] {
        let parameters = json!({"common_name": "own", "self_sign": true, "duration": duration});
        let response = server.generate("/own", "certificate", parameters).await;
        response.expect(400).error();
    }
}

#[tokio::test]
async fn repeating_a_request_below_the_minimum_converges() {
    let server = server(MINIMUMS).await;
    let parameters = |days: u32| json!({"self_sign": true, "duration": days});
    let first = server.issued("/own", parameters(30)).await;
    for days in [30, 31, 90] {
        let kept = server.issued("/own", parameters(days)).await;
        assert_eq!(kept["id"], first["id"], "{days}");
        assert_eq!(kept["duration_used"], 0);
        assert_eq!(kept["duration_overridden"], false);
    }
    let longer = server.issued("/own", parameters(91)).await;
    assert_ne!(longer["id"], first["id"]);
}

#[tokio::test]
async fn every_way_to_regenerate_raises_an_inherited_duration() {
    let server = Server::start().await;
    for (name, parameters) in [
        ("/root", json!({"is_ca": true, "duration": 30})),
        ("/leaf", json!({"ca": "/root", "duration": 30})),
        ("/through-data", json!({"ca": "/root", "duration": 30})),
        ("/other", json!({"is_ca": true})),
        ("/bulk", json!({"ca": "/other", "duration": 30})),
        ("/converged", json!({"self_sign": true, "duration": 30})),
    ] {
        server.issued(name, parameters).await;
    }
    let server = Server::start_in(server.stop().await, &options(MINIMUMS)).await;
    let root = server.regenerated("/root").await;
    assert_used(&root, 1000, true);
    let leaf = server.regenerated("/leaf").await;
    assert_used(&leaf, 90, true);
    let again = server.regenerated("/leaf").await;
    assert_used(&again, 90, false);
    let body = json!({"name": "/through-data", "regenerate": true});
    let version = server.post("/api/v1/data", body).await.expect(200).json();
    assert_used(&version, 90, true);
    server.bulk_regenerate("/other").await.expect(200);
    let bulk = server.newest("/bulk").await;
    assert_eq!(days(&bulk), 90);
    let parameters = json!({"self_sign": true, "duration": 30});
    let version = server.issued("/converged", parameters).await;
    assert_used(&version, 90, true);
}

#[tokio::test]
async fn regenerating_by_id_raises_inherited_and_requested_durations() {
    let server = Server::start().await;
    for name in ["/own", "/other"] {
        let parameters = json!({"self_sign": true, "duration": 30});
        server.issued(name, parameters).await;
    }
    let server = Server::start_in(server.stop().await, &options(MINIMUMS)).await;
    let own = Certificate::named(&server, "/own").await;
    for (body, used, is_overridden) in [
        (json!({"duration": 100}), 100, false),
        (json!({"duration": 89}), 90, true),
        (json!({}), 90, false),
    ] {
        let version = own.regenerate(body).await.expect(200).json();
        assert_used(&version, used, is_overridden);
    }
    let other = Certificate::named(&server, "/other").await;
    let body = json!({"set_as_transitional": true});
    let version = other.regenerate(body).await.expect(200).json();
    assert_used(&version, 90, true);
}

// Default key usages of CAs.

const ON: &str = "enable_default_ca_key_usages = true";

/// Returns the key usage extension of a version's certificate as text; empty if it is absent.
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
            "/requested",
            json!({"is_ca": true, "key_usage": ["digital_signature"]}),
            "Digital Signature",
        ),
        ("/leaf", json!({"ca": "/root"}), ""),
    ] {
        let version = server.issued(name, parameters).await;
        assert_eq!(usage(&version), expected, "{name}");
    }
}

#[tokio::test]
async fn converge_compares_with_the_defaults_applied() {
    let server = server(ON).await;
    let without = json!({"is_ca": true});
    let first = server.issued("/root", without.clone()).await;
    let mut with = without.clone();
    with["key_usage"] = json!(["crl_sign", "key_cert_sign"]);
    for parameters in [without, with] {
        let kept = server.issued("/root", parameters).await;
        assert_eq!(kept["id"], first["id"]);
    }
    let other = json!({"is_ca": true, "key_usage": ["crl_sign"]});
    let written = server.issued("/root", other).await;
    assert_ne!(written["id"], first["id"]);
}

#[tokio::test]
async fn regenerating_a_set_ca_adds_the_defaults() {
    let off = Server::start().await;
    let root = json!({"is_ca": true});
    let generated = off.issued("/generated", root).await;
    assert_eq!(usage(&generated), "");
    off.stored("/set", "certificate", generated["value"].clone())
        .await;
    let elsewhere = external_certificates::authority("elsewhere");
    off.stored("/elsewhere", "certificate", elsewhere.public())
        .await;
    let server = Server::start_in(off.stop().await, &options(ON)).await;
    for name in ["/generated", "/set", "/elsewhere"] {
        let version = server.regenerated(name).await;
        assert_eq!(usage(&version), DEFAULT, "{name}");
    }
}

#[tokio::test]
async fn regenerating_by_id_in_bulk_or_through_data_adds_defaults() {
    let off = Server::start().await;
    for (name, ca) in [("/root", ""), ("/middle", "/root"), ("/data", "/root")] {
        let parameters = json!({
            "common_name": name, "is_ca": true, "ca": ca, "key_type": "ecdsa-p256",
        });
        off.generated(name, "certificate", parameters).await;
    }
    let server = Server::start_in(off.stop().await, &options(ON)).await;
    let root = Certificate::named(&server, "/root").await;
    let longer = json!({"duration": 30});
    let root = root.regenerate(longer).await.expect(200).json();
    assert_eq!(usage(&root), DEFAULT);
    let body = json!({"name": "/data", "regenerate": true});
    let version = server.post("/api/v1/data", body).await.expect(200).json();
    assert_eq!(usage(&version), DEFAULT);
    server.bulk_regenerate("/root").await.expect(200);
    let versions = server.versions("/middle").await;
    let usages: Vec<String> = versions.iter().map(usage).collect();
    assert_eq!(usages, [DEFAULT, ""]);
}
