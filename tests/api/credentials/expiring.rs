//! GET /api/v1/data with expires-within-days

#![expect(
    clippy::expect_used,
    reason = "a test ends when its certificate can't be made"
)]

use keywright_harness::Server;
use rcgen::{CertificateParams, KeyPair, PKCS_RSA_SHA256, date_time_ymd};
use serde_json::{Value, json};

use crate::given;

#[tokio::test]
async fn certificates_that_expire_within_the_days_are_found() {
    let server = Server::start().await;
    for duration_days in [1, 10, 100] {
        generate_certificate(&server, &format!("/path/c{duration_days}"), duration_days).await;
    }
    given::set_value(&server, "/path/value", "v").await;
    given::generate(&server, "/path/password", "password", json!({})).await;
    for (days, expected) in [
        (0, &[][..]),
        (1, &["/path/c1"]),
        (9, &["/path/c1"]),
        (10, &["/path/c1", "/path/c10"]),
        (99, &["/path/c1", "/path/c10"]),
        (100, &["/path/c1", "/path/c10", "/path/c100"]),
        (1_000_000, &["/path/c1", "/path/c10", "/path/c100"]),
        (i64::MAX, &["/path/c1", "/path/c10", "/path/c100"]),
        (-1, &[]),
        (i64::MIN, &[]),
    ] {
        for names in ["path=", "path=/path", "name-like=", "name-like=path/c"] {
            let query = format!("{names}&expires-within-days={days}");
            let mut found = given::found(&server, &query).await;
            found.sort();
            assert_eq!(found, expected, "{query}");
        }
    }
    let below = "path=/other&expires-within-days=1000";
    assert!(given::found(&server, below).await.is_empty());
    let containing = "name-like=c10&expires-within-days=20";
    assert_eq!(given::found(&server, containing).await, ["/path/c10"]);
}

#[tokio::test]
async fn each_item_has_its_expiry() {
    let server = Server::start().await;
    let version = generate_certificate(&server, "/c", 10).await;
    let answer = server
        .get("/api/v1/data?path=&expires-within-days=30")
        .await
        .expect(200);
    let item = json!({
        "name": "/c",
        "version_created_at": version["version_created_at"],
        "expiry_date": version["expiry_date"],
    });
    assert_eq!(answer.json(), json!({"credentials": [item]}));
}

#[tokio::test]
async fn expired_certificates_are_found() {
    let server = Server::start().await;
    let expired = json!({"certificate": expired_certificate()});
    let version = given::set(&server, "/expired", "certificate", expired).await;
    assert_eq!(version["expiry_date"], "2002-01-01T00:00:00Z");
    for days in [0, 1, -30] {
        let query = format!("path=&expires-within-days={days}");
        assert_eq!(given::found(&server, &query).await, ["/expired"], "{days}");
    }
    let long_before = format!("path=&expires-within-days={}", -365 * 100);
    assert!(given::found(&server, &long_before).await.is_empty());
}

#[tokio::test]
async fn the_newest_version_alone_decides() {
    let server = Server::start().await;
    generate_certificate(&server, "/renewed", 5).await;
    let long_lived = json!({
        "name": "/renewed", "type": "certificate", "mode": "overwrite",
        "parameters": {"common_name": "c", "self_sign": true, "duration": 300},
    });
    server.post("/api/v1/data", long_lived).await.expect(200);
    assert!(
        given::found(&server, "path=&expires-within-days=30")
            .await
            .is_empty()
    );
    let expired = json!({"certificate": expired_certificate()});
    given::set(&server, "/renewed", "certificate", expired).await;
    assert_eq!(
        given::found(&server, "path=&expires-within-days=30").await,
        ["/renewed"]
    );
}

async fn generate_certificate(server: &Server, name: &str, duration_days: u32) -> Value {
    let parameters = json!({"common_name": "c", "self_sign": true, "duration": duration_days});
    given::generate(server, name, "certificate", parameters).await
}

fn expired_certificate() -> String {
    let key = KeyPair::generate_for(&PKCS_RSA_SHA256).expect("a key");
    let mut parameters = CertificateParams::default();
    parameters.not_before = date_time_ymd(2001, 1, 1);
    parameters.not_after = date_time_ymd(2002, 1, 1);
    parameters.self_signed(&key).expect("a certificate").pem()
}
