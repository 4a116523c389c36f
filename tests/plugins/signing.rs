//! The `issuer` resource, a signing CA that the host passes to a plugin. It is limited to the request. The CA's private key is never
//! in the guest's memory, not even while the guest uses the issuer.

use chrono::{DateTime, Duration, Utc};
use keywright_harness::{Options, ReusedServer, Server};
use serde_json::{Value, json};
use x509_parser::{certificate::X509Certificate, pem::parse_x509_pem, prelude::FromDer};

/// The maximum number of attempts until a call starts and ends in the same second.
const ATTEMPTS_MAX: usize = 1_000;

/// The requested duration, in days.
const DURATION_DAYS: i64 = 2;

#[tokio::test]
async fn normalized_parameters_beyond_the_request_are_a_fault() {
    let server = Server::start_with(&Options::default().hostile("", "normalize = \"echo\"")).await;
    for name in ["/root", "/other"] {
        let authority = json!({"common_name": name, "is_ca": true, "key_type": "ecdsa-p256"});
        server.generated(name, "certificate", authority).await;
    }
    let request = json!({"ca": "/root", "duration": DURATION_DAYS});
    for (field, value, status) in [
        ("duration", json!(DURATION_DAYS), 200),
        ("duration", json!(1), 200),
        ("duration", json!(DURATION_DAYS + 1), 500),
        ("duration", json!("2"), 500),
        ("duration", Value::Null, 500),
        ("ca", json!("/other"), 500),
        ("ca", Value::Null, 500),
        ("is_ca", json!(true), 500),
        ("key_usage", json!(["key_cert_sign"]), 500),
        ("extended_key_usage", json!(["ocsp_signing"]), 500),
    ] {
        let mut normalized = request.clone();
        normalized[field] = value;
        let mut parameters = request.clone();
        parameters["note"] = json!(normalized.to_string());
        let response = server
            .generate_in_mode("overwrite", "/a", "hostile", parameters)
            .await;
        assert_eq!(response.status, status, "{normalized}: {response:?}");
    }
}

async fn server() -> ReusedServer {
    Server::reused_with(&Options::default().hostile("", "generate = \"search\"")).await
}

/// Passes a body to a guest's issuer, with a validity that starts now and lasts this number of days. Returns the guest's
/// note: the result, and how often each of the texts in `masked` occurs in the guest's memory. Callers invert the bytes of these
/// texts, so that the request itself adds no occurrence. The validity must start in the second of the call, so the call is
/// retried if the second passes.
async fn outcome(server: &Server, body: &[u8], days: i64, masked: &[String]) -> String {
    for _ in 0..ATTEMPTS_MAX {
        let parameters = json!({
            "ca": "/root",
            "duration": DURATION_DAYS,
            "masked": masked,
            "tbs_certificate": hex::encode(renewed(body, days)),
        });
        let response = server
            .generate_in_mode("overwrite", "/a", "hostile", parameters)
            .await;
        let version = response.expect(200).json();
        let note = version["value"]["note"].as_str().unwrap();
        if !note.contains("the validity must not begin") {
            return note.to_owned();
        }
    }
    panic!("no call started and ended in the same second");
}

pub(crate) fn body(version: &Value) -> Vec<u8> {
    let der = der(version["value"]["certificate"].as_str().unwrap());
    let (_, certificate) = X509Certificate::from_der(&der).unwrap();
    certificate.tbs_certificate.as_ref().to_vec()
}

/// Returns the body with a validity that starts now. The body must not contain other times than its validity.
pub(crate) fn renewed(body: &[u8], days: i64) -> Vec<u8> {
    const UTC_TIME: &[u8] = &[0x17, 0x0d];
    const UTC_TIME_BYTES: usize = 13;
    let text = |time: DateTime<Utc>| time.format("%y%m%d%H%M%SZ").to_string();
    let now = Utc::now();
    let mut renewed = body.to_vec();
    let mut begin = 0;
    for time in [now, now + Duration::days(days)] {
        let position = renewed[begin..]
            .windows(UTC_TIME.len() + UTC_TIME_BYTES)
            .position(|bytes| bytes.starts_with(UTC_TIME) && bytes.ends_with(b"Z"))
            .unwrap();
        let content = begin + position + UTC_TIME.len();
        begin = content + UTC_TIME_BYTES;
        renewed[content..begin].copy_from_slice(text(time).as_bytes());
    }
    renewed
}

/// The offset of the secret part of a PKCS#1 key of 2048 bits: after version, modulus and public exponent.
const SECRET_PART_BEGINS: usize = 4 + 3 + 261 + 5;

/// The length of the fragments to search for, in bytes.
const FRAGMENT_BYTES: usize = 16;

/// Returns a CA and a certificate that it signed.
async fn root_and_leaf(server: &Server) -> [Value; 2] {
    let root = json!({"common_name": "root", "is_ca": true});
    let root = server.generated("/root", "certificate", root).await;
    let leaf = json!({"common_name": "leaf", "ca": "/root", "duration": DURATION_DAYS});
    let leaf = server.generated("/leaf", "certificate", leaf).await;
    [root, leaf]
}

#[tokio::test]
async fn a_validity_longer_than_requested_is_not_signed() {
    let server = server().await;
    let [_, leaf] = root_and_leaf(&server).await;
    for (days, expected) in [
        (DURATION_DAYS, "signed "),
        (
            DURATION_DAYS + 1,
            "refused: the validity must not be longer than was requested",
        ),
    ] {
        let outcome = outcome(&server, &body(&leaf), days, &[]).await;
        assert!(outcome.starts_with(expected), "{days}: {outcome}");
    }
}

#[tokio::test]
async fn an_issuer_signs_once_and_at_most_64_kib() {
    let options = |behaviour: &str| {
        let settings = format!("generate = \"{behaviour}\"");
        Options::default().hostile("", &settings)
    };
    let server = Server::start_with(&options("sign")).await;
    root_and_leaf(&server).await;
    for (behaviour, expected) in [
        (
            "sign-twice",
            "; refused: the issuer can sign only once in a call;",
        ),
        ("sign-most", "refused: the body has a malformed "),
        ("sign-large", "refused: the body must have at most 64 KiB;"),
        ("sign-huge", "returned more output than its limit of "),
    ] {
        server.reload_plugins(&options(behaviour)).await;
        let request = json!({"ca": "/root"});
        let response = server.generate_in_mode("overwrite", "/a", "hostile", request);
        let body = response.await.body;
        assert!(body.contains(expected), "{behaviour}: {body}");
    }
}

#[tokio::test]
async fn ca_key_is_never_in_guest_memory() {
    let server = server().await;
    let [root, leaf] = root_and_leaf(&server).await;
    let pem = root["value"]["private_key"].as_str().unwrap();
    let modulus = &der(pem)[20..20 + FRAGMENT_BYTES];
    let secrets = fragments(pem);
    let mut masked = vec![inverted(modulus)];
    masked.extend(secrets.iter().map(|secret| inverted(secret)));
    let note = outcome(&server, &body(&leaf), DURATION_DAYS, &masked).await;
    let (outcome, counts) = note.split_once("; ").unwrap();
    assert!(outcome.starts_with("signed "), "{note}");
    let counts: Vec<u32> = counts
        .split(' ')
        .map(|count| count.parse().unwrap())
        .collect();
    assert_eq!(counts.len(), secrets.len() + 1);
    assert!(
        counts[0] > 0,
        "the public modulus was not found, so the search proves nothing"
    );
    assert!(counts[1..].iter().all(|count| *count == 0), "{counts:?}");
}

/// Returns every fragment of the secret part of a key: of its DER, of its DER with reversed bytes (the byte order of
/// arithmetic), and of its PEM.
fn fragments(pem: &str) -> Vec<Vec<u8>> {
    let der = der(pem);
    let of_der = der[SECRET_PART_BEGINS..].chunks_exact(FRAGMENT_BYTES);
    let mut fragments: Vec<Vec<u8>> = of_der.map(<[u8]>::to_vec).collect();
    let reversed = fragments
        .iter()
        .map(|fragment| fragment.iter().rev().copied().collect());
    fragments.extend(reversed.collect::<Vec<_>>());
    let secret_lines_begin = SECRET_PART_BEGINS.div_ceil(48);
    let lines = pem
        .lines()
        .filter(|line| !line.starts_with("-----"))
        .skip(secret_lines_begin);
    for line in lines {
        fragments.extend(
            line.as_bytes()
                .chunks_exact(FRAGMENT_BYTES)
                .map(<[u8]>::to_vec),
        );
    }
    assert!(fragments.len() > 150, "{}", fragments.len());
    fragments
}

fn der(pem: &str) -> Vec<u8> {
    parse_x509_pem(pem.as_bytes()).unwrap().1.contents
}

fn inverted(bytes: &[u8]) -> String {
    hex::encode(bytes.iter().map(|byte| !byte).collect::<Vec<_>>())
}
