//! Converging certificates.

use keywright_harness::{Options, QUICK_KEY, Server};
use rcgen::PKCS_ECDSA_P256_SHA256;
use serde_json::{Value, json};

use super::converge::{
    Outcome::{Kept, Written},
    assert_outcome, assert_outcomes, with,
};
use crate::{
    certificates::Certificate,
    external_certificates::{
        DURATION_DAYS, Signing, authority, authority_with, self_signed_leaf_with,
    },
};

// Comparison of parameters.

const OF_ROOTS: &str = r#"
    Kept {} then {}
    Kept {} then {"duration": 365, "organization": ""}
    Kept {} then {"alternative_names": [], "key_usage": []}
    Kept {} then {"self_sign": true}
    Kept {"alternative_names": ["2001:DB8::0001"]} then {"alternative_names": ["2001:db8::1"]}
    Kept {"key_usage": ["crl_sign", "crl_sign"]} then {"key_usage": ["crl_sign"]}
"#;

const OF_LEAVES: &str = r#"
    Kept {} then {}
    Kept {} then {"is_ca": false, "ca": ""}
    Kept {} then {"duration": "90"}
    Kept {} then {"key_usage": ["key_agreement", "digital_signature"]}
    Written {} then {"common_name": "other"}
    Written {} then {"organization": "Other"}
    Written {} then {"organization_unit": ""}
    Written {} then {"locality": "Wien"}
    Written {} then {"state": "Wien"}
    Written {} then {"country": "DE"}
    Written {} then {"alternative_names": ["10.0.0.1", "a.example.org"]}
    Written {} then {"alternative_names": ["a.example.org"]}
    Written {} then {"alternative_names": []}
    Written {} then {"key_usage": ["digital_signature"]}
    Written {} then {"key_usage": []}
    Written {} then {"extended_key_usage": ["client_auth", "server_auth"]}
    Written {} then {"extended_key_usage": []}
    Written {} then {"duration": 91}
    Written {} then {"duration": 365}
    Written {} then {"is_ca": true}
"#;

const OF_RSA_LEAVES: &str = r#"
    Kept {} then {}
    Kept {} then {"key_length": 2048}
    Kept {} then {"key_length": "2048"}
    Written {} then {"key_length": 3072}
    Kept {} then {"key_type": "rsa"}
    Kept {"key_type": "rsa"} then {}
    Kept {"key_type": "ecdsa-p256"} then {"key_type": "ecdsa-p256"}
    Kept {"key_type": "ed25519"} then {"key_type": "ed25519"}
    Written {} then {"key_type": "ecdsa-p256"}
    Written {"key_type": "ecdsa-p256"} then {}
    Written {"key_type": "ecdsa-p256"} then {"key_type": "ecdsa-p384"}
    Written {"key_type": "ecdsa-p256"} then {"key_type": "ed25519"}
"#;

#[tokio::test]
async fn every_parameter_of_a_certificate_is_compared() {
    let server = Server::reused().await;
    let root = json!({"common_name": "root", "is_ca": true, "key_type": QUICK_KEY});
    let rsa = json!({"common_name": "leaf", "self_sign": true});
    let full = json!({
        "common_name": "leaf", "organization": "Example", "organization_unit": "Unit", "locality": "Graz",
        "state": "Styria", "country": "AT", "alternative_names": ["a.example.org", "10.0.0.1"],
        "key_usage": ["digital_signature", "key_agreement"],
        "extended_key_usage": ["server_auth", "client_auth"], "duration": 90, "self_sign": true,
        "key_type": QUICK_KEY,
    });
    for (base, table) in [(root, OF_ROOTS), (rsa, OF_RSA_LEAVES), (full, OF_LEAVES)] {
        assert_outcomes(&server, "certificate", &base, table).await;
    }
}

#[tokio::test]
async fn a_set_certificate_is_compared_by_its_contents() {
    let server = Server::reused().await;
    let leaf = self_signed_leaf_with("leaf", &PKCS_ECDSA_P256_SHA256);
    let root = authority_with("root", &PKCS_ECDSA_P256_SHA256);
    let of_leaf = json!({
        "common_name": "leaf", "self_sign": true, "duration": DURATION_DAYS, "key_type": QUICK_KEY,
    });
    let of_root = json!({
        "common_name": "root",
        "is_ca": true,
        "key_usage": ["crl_sign", "key_cert_sign"],
        "duration": DURATION_DAYS,
        "key_type": QUICK_KEY,
    });
    for (certificate, parameters) in [(&leaf, of_leaf), (&root, of_root)] {
        for (change, outcome) in [
            (json!({}), Kept),
            (json!({"duration": 365}), Written),
            (json!({"common_name": "other"}), Written),
            (json!({"key_type": "ecdsa-p384"}), Written),
            (json!({"key_usage": ["crl_sign"]}), Written),
            (json!({"extended_key_usage": ["server_auth"]}), Written),
            (json!({"alternative_names": ["example.org"]}), Written),
        ] {
            let set = server
                .stored("/a", "certificate", certificate.public())
                .await;
            let requested = with(&parameters, &change);
            assert_outcome(outcome, &server, &set, "certificate", &requested).await;
        }
    }
}

#[tokio::test]
async fn converge_overwrites_a_credential_without_a_certificate() {
    let server = Server::reused().await;
    let value = json!({"ca": authority("root").certificate});
    let set = server.stored("/a", "certificate", value).await;
    let parameters = json!({"common_name": "root", "is_ca": true});
    assert_outcome(Written, &server, &set, "certificate", &parameters).await;
}

#[tokio::test]
async fn the_response_for_a_kept_certificate_has_duration_used_0() {
    let server = Server::reused().await;
    let parameters = json!({"common_name": "root", "is_ca": true, "key_type": "ecdsa-p384"});
    let made = server
        .generated("/a", "certificate", parameters.clone())
        .await;
    assert_eq!(made["duration_used"], 365);
    let kept = server.generated("/a", "certificate", parameters).await;
    assert_eq!(kept["id"], made["id"]);
    assert_eq!(kept["duration_overridden"], false);
    assert_eq!(kept["duration_used"], 0);
    assert_eq!(kept["key_length"], 384);
}

#[tokio::test]
async fn the_active_version_is_compared_not_a_newer_transitional_one() {
    let server = Server::reused().await;
    let parameters = |days: u32| json!({"common_name": "a", "is_ca": true, "key_type": QUICK_KEY, "duration": days});
    let certificate = Certificate::generate(&server, "/a", parameters(30)).await;
    let active = certificate.versions().await[0].clone();
    let body = json!({"set_as_transitional": true, "duration": 40});
    certificate.regenerate(body).await.expect(200);
    assert_outcome(Kept, &server, &active, "certificate", &parameters(30)).await;
    assert_outcome(Written, &server, &active, "certificate", &parameters(40)).await;
    assert_eq!(certificate.versions().await.len(), 3);
}

#[tokio::test]
async fn a_lone_transitional_version_is_compared() {
    let server = Server::reused().await;
    let parameters = json!({"common_name": "a", "is_ca": true, "key_type": QUICK_KEY});
    let certificate = Certificate::generate(&server, "/a", parameters.clone()).await;
    let only = certificate.versions().await[0].clone();
    let response = certificate.move_transitional(json!("latest")).await;
    response.expect(200);
    assert_outcome(Kept, &server, &only, "certificate", &parameters).await;
    let other = with(&parameters, &json!({"common_name": "b"}));
    assert_outcome(Written, &server, &only, "certificate", &other).await;
    assert_eq!(certificate.current().await.len(), 2);
}

// Comparison of signers.

async fn with_root(name: &str, server: &Server) -> Value {
    let root = json!({"common_name": "root", "is_ca": true, "key_type": QUICK_KEY});
    server
        .generate_in_mode("overwrite", name, "certificate", root)
        .await
        .expect(200)
        .json()
}

fn leaf_of(ca: &str) -> Value {
    json!({"common_name": "leaf", "ca": ca, "key_type": QUICK_KEY})
}

#[tokio::test]
async fn another_ca_adds_a_version() {
    let server = Server::reused().await;
    with_root("/root", &server).await;
    with_root("/other", &server).await;
    let by_root = leaf_of("/root");
    let by_other = leaf_of("/other");
    let made = server.generated("/a", "certificate", by_root.clone()).await;
    assert_outcome(Kept, &server, &made, "certificate", &by_root).await;
    assert_outcome(Written, &server, &made, "certificate", &by_other).await;
}

#[tokio::test]
async fn a_new_version_of_the_ca_adds_one_version() {
    let server = Server::reused().await;
    with_root("/root", &server).await;
    let parameters = leaf_of("/root");
    let made = server.generate("/a", "certificate", parameters.clone());
    let made = made.await.expect(200).json();
    with_root("/root", &server).await;
    assert_outcome(Written, &server, &made, "certificate", &parameters).await;
    let renewed = server.versions("/a").await[0].clone();
    assert_outcome(Kept, &server, &renewed, "certificate", &parameters).await;
}

#[tokio::test]
async fn another_type_with_the_name_of_the_ca_changes_nothing() {
    let server = Server::reused().await;
    with_root("/root", &server).await;
    let by_root = leaf_of("/root");
    let made = server.generated("/a", "certificate", by_root).await;
    server.delete("/api/v1/data?name=/root").await.expect(204);
    let self_signed = json!({"common_name": "leaf", "self_sign": true, "key_type": QUICK_KEY});
    server.set_value("/root", "v").await;
    assert_outcome(Written, &server, &made, "certificate", &self_signed).await;
}

#[tokio::test]
async fn switching_between_ca_and_self_signed_adds_a_version() {
    let server = Server::reused().await;
    with_root("/root", &server).await;
    let by_root = leaf_of("/root");
    let by_itself = json!({"common_name": "leaf", "self_sign": true, "key_type": QUICK_KEY});
    let made = server.generated("/a", "certificate", by_root.clone()).await;
    assert_outcome(Written, &server, &made, "certificate", &by_itself).await;
    let own = server.versions("/a").await[0].clone();
    assert_outcome(Written, &server, &own, "certificate", &by_root).await;
}

#[tokio::test]
async fn another_type_with_or_without_a_ca_differs() {
    let of_type = "issued-current";
    let signing = ["random", "signing"];
    let options = Options::default().plugin(of_type, "current-issued", &signing, "");
    let server = Server::start_with(&options).await;
    with_root("/root", &server).await;
    let table = r#"
        Kept {} then {"ca": ""}
        Written {} then {"ca": "/root"}
        Kept {"ca": "/root"} then {"ca": "ROOT"}
        Written {"ca": "/root"} then {}
    "#;
    assert_outcomes(&server, of_type, &json!({}), table).await;
}

#[tokio::test]
async fn a_leaf_set_with_ca_name_is_compared_by_its_ca() {
    let server = Server::reused().await;
    let root = authority("root");
    let stored = root.value();
    server.stored("/root", "certificate", stored.clone()).await;
    let leaf = root.sign_leaf("leaf");
    let value = json!({"certificate": leaf.certificate, "ca_name": "/root"});
    let parameters = json!({"common_name": "leaf", "ca": "/root", "duration": 400});

    let set = server.stored("/a", "certificate", value.clone()).await;
    assert_outcome(Kept, &server, &set, "certificate", &parameters).await;

    server.stored("/root", "certificate", stored).await;
    assert_outcome(Kept, &server, &set, "certificate", &parameters).await;

    with_root("/other", &server).await;
    let by_other = json!({"common_name": "leaf", "ca": "/other", "duration": 400});
    assert_outcome(Written, &server, &set, "certificate", &by_other).await;
    let set = server.stored("/a", "certificate", value).await;

    let renewed = root.renewed_as("root");
    server.stored("/root", "certificate", renewed.value()).await;
    assert_outcome(Written, &server, &set, "certificate", &parameters).await;
}

#[tokio::test]
async fn a_leaf_set_with_a_ca_certificate_matches_any_ca_name() {
    let server = Server::reused().await;
    let root = authority("root");
    server.stored("/root", "certificate", root.value()).await;
    let leaf = root.sign_leaf("leaf");
    let value = json!({"certificate": leaf.certificate, "ca": root.certificate});
    let set = server.stored("/a", "certificate", value).await;
    let parameters = json!({"common_name": "leaf", "ca": "/root", "duration": 400});
    assert_outcome(Kept, &server, &set, "certificate", &parameters).await;
    let longer = with(&parameters, &json!({"key_length": 3072}));
    assert_outcome(Written, &server, &set, "certificate", &longer).await;
}

#[tokio::test]
async fn a_transitional_ca_version_adds_a_version_once_promoted() {
    let server = Server::reused().await;
    let root = json!({"common_name": "root", "is_ca": true, "key_type": QUICK_KEY});
    let root = Certificate::generate(&server, "/root", root).await;
    let parameters = leaf_of("/root");
    let response = server.generate("/a", "certificate", parameters.clone());
    let made = response.await.expect(200).json();
    let first = root.versions().await[0]["id"].clone();
    let body = json!({"set_as_transitional": true});
    root.regenerate(body).await.expect(200);
    assert_outcome(Kept, &server, &made, "certificate", &parameters).await;
    root.move_transitional(first).await.expect(200);
    assert_outcome(Written, &server, &made, "certificate", &parameters).await;
    let renewed = server.versions("/a").await[0].clone();
    root.move_transitional(Value::Null).await.expect(200);
    assert_outcome(Kept, &server, &renewed, "certificate", &parameters).await;
}
