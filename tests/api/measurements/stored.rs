//! Metrics of stored data.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends when what it needs is not there"
)]

use keywright_harness::{Options, Server};
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use serde_json::json;

use crate::given;

/// A certificate that expired long ago.
fn expired_certificate() -> String {
    let mut parameters = CertificateParams::default();
    parameters.not_before = date_time_ymd(2001, 1, 1);
    parameters.not_after = date_time_ymd(2002, 1, 1);
    let key = KeyPair::generate().unwrap();
    parameters.self_signed(&key).unwrap().pem()
}

#[tokio::test]
async fn certificates_count_by_days_left_and_versions_by_key() {
    let server = Server::start_with(&Options::default().watched()).await;
    let value = json!({"certificate": expired_certificate()});
    given::set(&server, "/expired", "certificate", value).await;
    let days = [1, 7, 8, 30, 31, 90, 91, 365, 366, 3_650];
    for days in days {
        let parameters = json!({"self_sign": true, "duration": days});
        given::generate_certificate(&server, &format!("/d{days}"), parameters).await;
    }
    // Only the newest version counts.
    let parameters = json!({"self_sign": true, "duration": 20});
    given::generate_certificate(&server, "/renewed", parameters).await;
    let renewed = json!({
        "name": "/renewed",
        "type": "certificate",
        "mode": "overwrite",
        "parameters": {"common_name": "r", "key_type": "ecdsa-p256", "self_sign": true, "duration": 400},
    });
    server.post("/api/v1/data", renewed).await.expect(200);
    given::set_value(&server, "/value", "v").await;
    let scrape = server.scrape().await;
    for (days_left, number) in [
        ("expired", 1.0),
        ("7", 2.0),
        ("30", 2.0),
        ("90", 2.0),
        ("365", 2.0),
        ("more", 3.0),
    ] {
        let counted = scrape.sum("keywright_certificates", &[("days_left", days_left)]);
        assert_eq!(counted, Some(number), "{days_left}");
    }
    for (key, number) in [("active", 14.0), ("inactive", 0.0), ("unknown", 0.0)] {
        let counted = scrape.sum("keywright_encrypted_versions", &[("key", key)]);
        assert_eq!(counted, Some(number), "{key}");
    }
    let age = scrape.sum("keywright_stored_counts_age_seconds", &[]);
    assert!(age.is_some_and(|age| age >= 0.0), "{age:?}");
}

#[tokio::test]
async fn connections_to_the_database_are_within_their_limits() {
    let options = Options::default()
        .watched()
        .environment("KEYWRIGHT_STORAGE__READERS_MAX", "3")
        .environment("KEYWRIGHT_STORAGE__WRITERS_MAX", "1");
    let server = Server::start_with(&options).await;
    given::set_value(&server, "/a", "v").await;
    let scrape = server.scrape().await;
    for (pool, most) in [("reader", 3.0), ("writer", 1.0)] {
        let in_pool = |name, state: &[(&str, &str)]| {
            let labels = [&[("pool", pool)], state].concat();
            scrape.sum(name, &labels).unwrap()
        };
        assert!((in_pool("keywright_database_connections_max", &[]) - most).abs() < f64::EPSILON);
        let idle = in_pool("keywright_database_connections", &[("state", "idle")]);
        let in_use = in_pool("keywright_database_connections", &[("state", "in_use")]);
        assert!(idle + in_use >= 1.0 && idle + in_use <= most, "{pool}");
        assert!(in_pool("keywright_database_connection_waiters", &[]).abs() < f64::EPSILON);
    }
}
