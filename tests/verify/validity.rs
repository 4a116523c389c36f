//! Dates and serial numbers, as OpenSSL reads them.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends when what it needs is not there"
)]

use chrono::{NaiveDateTime, Utc};
use keywright_harness::{Server, is_available};
use serde_json::json;

use crate::files::{Files, certificate, openssl};

/// The date after a label, in seconds since 1970.
fn seconds(text: &str, label: &str) -> i64 {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(label))
        .unwrap();
    NaiveDateTime::parse_from_str(line, "%b %e %H:%M:%S %Y GMT")
        .unwrap()
        .and_utc()
        .timestamp()
}

#[tokio::test]
async fn a_certificate_lasts_exactly_its_days_from_now() {
    if !is_available("openssl") {
        return;
    }
    let server = Server::start().await;
    certificate(
        &server,
        "/root",
        json!({"common_name": "root", "is_ca": true}),
    )
    .await;
    for duration in [1, 30, 365, 3_650] {
        let parameters = json!({"common_name": "leaf", "ca": "/root", "duration": duration});
        let before = Utc::now().timestamp();
        let leaf = certificate(&server, "/leaf", parameters).await;
        let files = Files::new();
        let file = files.write_member("leaf", &leaf, "certificate");
        let dates = openssl(&["x509", "-in", &file, "-noout", "-startdate", "-enddate"]);
        let (begin, end) = (seconds(&dates, "notBefore="), seconds(&dates, "notAfter="));
        assert_eq!(end - begin, duration * 86_400);
        assert!((before..=Utc::now().timestamp()).contains(&begin));
        let expiry_date = chrono::DateTime::from_timestamp(end, 0).unwrap();
        assert_eq!(
            leaf["expiry_date"],
            expiry_date.format("%Y-%m-%dT%H:%M:%SZ").to_string()
        );
    }
}

#[tokio::test]
async fn serial_numbers_are_positive_and_of_at_most_159_bits() {
    if !is_available("openssl") {
        return;
    }
    let server = Server::start().await;
    let mut serials = std::collections::BTreeSet::new();
    for _ in 0..5 {
        let parameters = json!({"common_name": "own", "self_sign": true});
        let own = certificate(&server, "/own", parameters).await;
        let files = Files::new();
        let file = files.write_member("own", &own, "certificate");
        let serial = openssl(&["x509", "-in", &file, "-noout", "-serial"]);
        let digits = serial.trim().strip_prefix("serial=").unwrap().to_owned();
        assert!(!digits.starts_with('-'), "{digits}");
        let is_of_159_bits = digits.len() < 40 || digits.as_bytes()[0] < b'8';
        assert!(digits.len() <= 40 && is_of_159_bits, "{digits}");
        serials.insert(digits);
    }
    assert_eq!(serials.len(), 5);
}
