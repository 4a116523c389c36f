//! `POST /api/v1/certificates/{certificate_id}/regenerate` with another key length or duration.

use keywright_harness::Server;
use serde_json::{Value, json};

use super::Certificate;
use crate::{
    keys::{certificate_days, certificate_key_bits},
    made_elsewhere::authority_for_days,
};

fn key_bits(version: &Value) -> usize {
    certificate_key_bits(version["value"]["certificate"].as_str().unwrap())
}

fn duration_days(version: &Value) -> i64 {
    certificate_days(version["value"]["certificate"].as_str().unwrap())
}

/// A CA with an RSA key.
async fn rsa_root(server: &Server) -> Certificate<'_> {
    let parameters = json!({"is_ca": true, "key_type": "rsa"});
    Certificate::generate(server, "/a", parameters).await
}

#[tokio::test]
async fn changes_of_key_length_and_duration_persist() {
    let server = Server::start().await;
    let certificate = rsa_root(&server).await;
    for (body, bits, days) in [
        (json!({"duration": 17}), 2048, 17),
        (json!({"key_length": 3072}), 3072, 17),
        (json!({}), 3072, 17),
        (json!({"key_length": null, "duration": null}), 3072, 17),
        (json!({"key_length": "2048", "duration": "1"}), 2048, 1),
        (json!({"duration": 3650}), 2048, 3650),
    ] {
        let version = certificate
            .regenerate(body.clone())
            .await
            .expect(200)
            .json();
        assert_eq!(
            (key_bits(&version), duration_days(&version)),
            (bits, days),
            "{body}"
        );
        assert_eq!(version["key_length"], bits, "{body}");
        assert_eq!(version["duration_used"], days, "{body}");
        assert_eq!(version["duration_overridden"], false, "{body}");
        assert_eq!(version["certificate_authority"], true, "{body}");
    }
}

#[tokio::test]
async fn values_refused_on_generate_are_refused_here_too() {
    let server = Server::start().await;
    let certificate = rsa_root(&server).await;
    for (member, values) in [
        (
            "key_length",
            [
                json!(1024),
                json!(0),
                json!(-2048),
                json!(8192),
                json!(2048.5),
            ],
        ),
        (
            "duration",
            [
                json!(0),
                json!(-1),
                json!(3651),
                json!(1.5),
                json!(u64::MAX),
            ],
        ),
    ] {
        let of_other_kinds = [json!("x"), json!(true), json!([]), json!({})];
        for value in values.into_iter().chain(of_other_kinds) {
            let answer = certificate.regenerate(json!({member: value})).await;
            assert!(
                answer.expect(400).error().contains(member),
                "{member} {value}"
            );
        }
    }
    assert_eq!(certificate.versions().await.len(), 1);
}

#[tokio::test]
async fn a_set_certificate_keeps_a_duration_above_the_limit() {
    let server = Server::start().await;
    let days = 4_000;
    let root = authority_for_days("root", days);
    let certificate =
        Certificate::set(&server, "/a", json!({"certificate": root.certificate})).await;
    let body = json!({"key_length": 3072});
    let version = certificate.regenerate(body).await.expect(200).json();
    assert_eq!(version["duration_used"], days);
    assert_eq!(key_bits(&version), 3072);
    let body = json!({"duration": days});
    certificate.regenerate(body).await.expect(400).error();
}
