//! The `issuer` resource, a signing CA that the host passes to a plugin. It refuses certificate bodies that break a rule. The
//! CA's private key is never in the guest's memory, not even while the guest uses the issuer.

use chrono::{DateTime, Duration, Utc};
use keywright_harness::{Options, ReusedServer, Server};
use serde_json::{Value, json};
use x509_parser::{certificate::X509Certificate, pem::parse_x509_pem, prelude::FromDer};

/// The maximum number of attempts until a call starts and ends in the same second.
const ATTEMPTS_MAX: usize = 1_000;

/// The issuer's key types.
const KEY_TYPES: [&str; 4] = ["rsa", "ecdsa-p256", "ecdsa-p384", "ed25519"];

/// The requested duration, in days.
const DURATION_DAYS: i64 = 2;

/// The object identifier of key usage, which is critical, in DER; and an unknown one of the same length.
const KEY_USAGE: &[u8] = &[0x06, 0x03, 0x55, 0x1d, 0x0f];
const UNKNOWN: &[u8] = &[0x06, 0x03, 0x55, 0x1d, 0x63];

/// Certificates that the server generated. The tests modify their bodies and have the hostile plugin request a signature.
struct Signed {
    root: Value,
    leaf: Value,
    intermediate: Value,
    of_other_issuer: Value,
}

/// A body for signing, made from certificates that the server generated.
type Body = fn(&Signed) -> Vec<u8>;

/// The bodies, the number of days for which they are valid, and the beginnings of the results.
const BODIES: [(Body, i64, &str); 7] = [
    (body_of_leaf, DURATION_DAYS, "signed "),
    (
        |signed| body(&signed.intermediate),
        DURATION_DAYS,
        "refused: the basic constraints must be present; they may mark the certificate as a CA only if a CA was requested",
    ),
    (
        |signed| body(&signed.of_other_issuer),
        DURATION_DAYS,
        "refused: the issuer field must equal the subject of the issuing CA's certificate",
    ),
    (
        |signed| with_key(signed, &public_key(&signed.root)),
        DURATION_DAYS,
        OWN_KEY_REFUSED,
    ),
    (
        |signed| with_key(signed, &hybrid(&public_key(&signed.root))),
        DURATION_DAYS,
        OWN_KEY_REFUSED,
    ),
    (
        body_of_leaf,
        DURATION_DAYS + 1,
        "refused: the validity must not be longer than was requested",
    ),
    (
        |signed| replaced(&body_of_leaf(signed), KEY_USAGE, UNKNOWN),
        DURATION_DAYS,
        "refused: only basic constraints, key usage, extended key usage and subject alternative name may be critical",
    ),
];

const OWN_KEY_REFUSED: &str = "refused: the public key must not be the issuer's own";

#[tokio::test]
async fn only_the_requested_certificate_is_signed() {
    let server = server().await;
    for key_type in KEY_TYPES {
        let signed = signed(&server, key_type).await;
        for (body, days, expected) in BODIES {
            let outcome = outcome(&server, &body(&signed), days, &[]).await;
            assert!(
                outcome.starts_with(expected),
                "{key_type}: {outcome}, not {expected}"
            );
        }
    }
}

#[tokio::test]
async fn normalized_parameters_beyond_the_request_are_a_fault() {
    let server = Server::start_with(&Options::default().hostile("", "normalize = \"echo\"")).await;
    signed(&server, "ecdsa-p256").await;
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

fn body_of_leaf(signed: &Signed) -> Vec<u8> {
    body(&signed.leaf)
}

/// Returns the body of the leaf with another key.
fn with_key(signed: &Signed, key: &[u8]) -> Vec<u8> {
    replaced(&body_of_leaf(signed), &public_key(&signed.leaf), key)
}

async fn server() -> ReusedServer {
    Server::reused_with(&Options::default().hostile("", "generate = \"search\"")).await
}

async fn signed(server: &Server, key_type: &str) -> Signed {
    let certificate = async |name: &str, mut parameters: Value| {
        parameters["key_type"] = json!(key_type);
        parameters["common_name"] = json!(name);
        parameters["key_usage"] = json!(["digital_signature"]);
        let response = server.generate_in_mode("overwrite", name, "certificate", parameters);
        response.await.expect(200).json()
    };
    Signed {
        root: certificate("/root", json!({"is_ca": true})).await,
        leaf: certificate("/leaf", json!({"ca": "/root"})).await,
        intermediate: certificate("/intermediate", json!({"ca": "/root", "is_ca": true})).await,
        of_other_issuer: {
            certificate("/other", json!({"is_ca": true})).await;
            certificate("/of-other", json!({"ca": "/other"})).await
        },
    }
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
    with_certificate(version, |certificate| {
        certificate.tbs_certificate.as_ref().to_vec()
    })
}

/// Returns the bits of a certificate's public key.
fn public_key(version: &Value) -> Vec<u8> {
    with_certificate(version, |certificate| {
        certificate.public_key().subject_public_key.data.to_vec()
    })
}

/// Returns a point of a curve in hybrid form (X9.62, section 4.3.6), which repeats the parity of Y. Returns other keys unchanged.
fn hybrid(public_key: &[u8]) -> Vec<u8> {
    const UNCOMPRESSED: u8 = 0x04;
    match public_key {
        // Only points have an odd number of bytes: a form, and two coordinates of the same length.
        [UNCOMPRESSED, coordinates @ .., last] if coordinates.len() % 2 == 1 => {
            [&[0x06 | (last & 1)][..], coordinates, &[*last]].concat()
        }
        other => other.to_vec(),
    }
}

fn with_certificate<T>(version: &Value, read: impl FnOnce(&X509Certificate<'_>) -> T) -> T {
    let pem = version["value"]["certificate"].as_str().unwrap();
    let der = parse_x509_pem(pem.as_bytes()).unwrap().1.contents;
    read(&X509Certificate::from_der(&der).unwrap().1)
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

/// Replaces the only occurrence of a part of the bytes.
fn replaced(bytes: &[u8], part: &[u8], by: &[u8]) -> Vec<u8> {
    assert_eq!(part.len(), by.len());
    let position = bytes
        .windows(part.len())
        .position(|bytes| bytes == part)
        .unwrap();
    [&bytes[..position], by, &bytes[position + part.len()..]].concat()
}

/// The offset of the secret part of a PKCS#1 key of 2048 bits: after version, modulus and public exponent.
const SECRET_PART_BEGINS: usize = 4 + 3 + 261 + 5;

/// The length of the fragments to search for, in bytes.
const FRAGMENT_BYTES: usize = 16;

#[tokio::test]
async fn ca_key_is_never_in_guest_memory() {
    let server = server().await;
    let root = json!({"common_name": "root", "is_ca": true});
    let root = server.generated("/root", "certificate", root).await;
    let leaf = json!({"common_name": "leaf", "ca": "/root", "duration": 2});
    let leaf = server.generated("/leaf", "certificate", leaf).await;

    let pem = root["value"]["private_key"].as_str().unwrap();
    let modulus = &der(pem)[20..20 + FRAGMENT_BYTES];
    let secrets = fragments(pem);
    let mut masked = vec![inverted(modulus)];
    masked.extend(secrets.iter().map(|secret| inverted(secret)));
    let note = outcome(&server, &body(&leaf), 1, &masked).await;
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
