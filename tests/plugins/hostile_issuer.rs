//! What a hostile plugin asks the issuer that it is lent to sign, over HTTPS: each thing is refused by its rule.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test ends when what it needs is not there"
)]

use chrono::{DateTime, Duration, Utc};
use keywright_harness::{Options, Server, component};
use serde_json::{Value, json};
use x509_parser::{certificate::X509Certificate, pem::parse_x509_pem, prelude::FromDer};

use crate::hexadecimal::hexadecimal;

/// How often a call is made until it falls into one second.
const ATTEMPTS_MAX: usize = 1_000;

/// The types of keys of the issuer.
const KEY_TYPES: [&str; 4] = ["rsa", "ecdsa-p256", "ecdsa-p384", "ed25519"];

/// How long the hostile plugin is told that its certificate may last, in days.
const DURATION_DAYS: i64 = 2;

/// The object identifier of key usage, which is critical, in DER; and one that nobody knows, of the same length.
const KEY_USAGE: &[u8] = &[0x06, 0x03, 0x55, 0x1d, 0x0f];
const UNKNOWN: &[u8] = &[0x06, 0x03, 0x55, 0x1d, 0x63];

/// Certificates of the server whose bodies a hostile plugin asks for.
struct Signed {
    root: Value,
    leaf: Value,
    intermediate: Value,
    of_other_issuer: Value,
}

#[tokio::test]
async fn what_was_asked_for_is_signed() {
    told(&body_of_leaf, DURATION_DAYS, "signed ").await;
}

#[tokio::test]
async fn an_authority_is_refused_where_none_was_asked_for() {
    let words = "refused: the basic constraints must be there, and must assert an authority only if one was asked for";
    told(&|signed| body(&signed.intermediate), DURATION_DAYS, words).await;
}

#[tokio::test]
async fn another_issuer_name_is_refused() {
    let words = "refused: the issuer must be the subject of the issuer's certificate";
    told(
        &|signed| body(&signed.of_other_issuer),
        DURATION_DAYS,
        words,
    )
    .await;
}

#[tokio::test]
async fn the_issuers_own_key_is_refused_as_the_subjects() {
    let with_own_key = |signed: &Signed| with_key(signed, &public_key(&signed.root));
    told(&with_own_key, DURATION_DAYS, OWN_KEY_REFUSED).await;
}

#[tokio::test]
async fn the_issuers_own_key_is_refused_in_another_form_too() {
    let in_another_form = |signed: &Signed| with_key(signed, &hybrid(&public_key(&signed.root)));
    told(&in_another_form, DURATION_DAYS, OWN_KEY_REFUSED).await;
}

#[tokio::test]
async fn a_longer_validity_than_was_asked_for_is_refused() {
    let words = "refused: the validity must not be longer than was asked for";
    told(&body_of_leaf, DURATION_DAYS + 1, words).await;
}

#[tokio::test]
async fn an_unknown_critical_extension_is_refused() {
    let with_unknown = |signed: &Signed| replaced(&body_of_leaf(signed), KEY_USAGE, UNKNOWN);
    let words = "refused: only basic constraints, key usage, extended key usage and subject alternative name may be critical";
    told(&with_unknown, DURATION_DAYS, words).await;
}

const OWN_KEY_REFUSED: &str = "refused: the public key must not be the issuer's own";

/// Asserts what the plugin is told that wants such a body signed, by an issuer with a key of each type.
async fn told(wanted: &dyn Fn(&Signed) -> Vec<u8>, days: i64, words: &str) {
    let server = server().await;
    for key_type in KEY_TYPES {
        let signed = signed(&server, key_type).await;
        let outcome = outcome(&server, &wanted(&signed), days).await;
        assert!(outcome.starts_with(words), "{key_type}: {outcome}");
    }
}

fn body_of_leaf(signed: &Signed) -> Vec<u8> {
    body(&signed.leaf)
}

/// The body of the leaf with another key.
fn with_key(signed: &Signed, key: &[u8]) -> Vec<u8> {
    replaced(&body_of_leaf(signed), &public_key(&signed.leaf), key)
}

async fn server() -> Server {
    let section = format!(
        "component = \"{}\"\ngrants = [\"random\", \"signing\"]\nderived = true\nsettings = {{ generate = \"search\" }}",
        component("hostile").display(),
    );
    Server::start_with(&Options::default().generator("hostile", &section)).await
}

async fn signed(server: &Server, key_type: &str) -> Signed {
    let certificate = async |name: &str, mut parameters: Value| {
        parameters["key_type"] = json!(key_type);
        parameters["common_name"] = json!(name);
        parameters["key_usage"] = json!(["digital_signature"]);
        let answer = server.generate_in_mode("overwrite", name, "certificate", parameters);
        answer.await.expect(200).json()
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

/// What came of the plugin's wish to have a body signed that begins now and lasts so many days. The body must begin in
/// the very second of the call, so a call in which the second passes is made again.
async fn outcome(server: &Server, body: &[u8], days: i64) -> String {
    for _ in 0..ATTEMPTS_MAX {
        let parameters = json!({
            "ca": "/root",
            "duration": DURATION_DAYS,
            "masked": [],
            "tbs_certificate": hexadecimal(&renewed(body, days)),
        });
        let answer = server
            .generate_in_mode("overwrite", "/a", "hostile", parameters)
            .await;
        let version = answer.expect(200).json();
        let note = version["value"]["note"].as_str().unwrap();
        if !note.contains("the validity must not begin") {
            return note.to_owned();
        }
    }
    panic!("no call was made within one second");
}

/// The body of a certificate.
pub(crate) fn body(version: &Value) -> Vec<u8> {
    with_certificate(version, |certificate| {
        certificate.tbs_certificate.as_ref().to_vec()
    })
}

/// The bits of a certificate's public key.
fn public_key(version: &Value) -> Vec<u8> {
    with_certificate(version, |certificate| {
        certificate.public_key().subject_public_key.data.to_vec()
    })
}

/// A point of a curve in the hybrid form (X9.62, section 4.3.6), which tells once more whether its Y is odd; another key
/// as it is.
fn hybrid(public_key: &[u8]) -> Vec<u8> {
    const UNCOMPRESSED: u8 = 0x04;
    match public_key {
        // Only a point has an odd number of bytes: a form, and two coordinates of the same length.
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

/// The body with a validity that begins now: both of its times are the only ones in it.
pub(crate) fn renewed(body: &[u8], days: i64) -> Vec<u8> {
    const UTC_TIME: &[u8] = &[0x17, 0x0d];
    const UTC_TIME_BYTES: usize = 13;
    let text = |time: DateTime<Utc>| time.format("%y%m%d%H%M%SZ").to_string();
    let now = Utc::now();
    let mut renewed = body.to_vec();
    let mut begin = 0;
    for time in [now, now + Duration::days(days)] {
        let place = renewed[begin..]
            .windows(UTC_TIME.len() + UTC_TIME_BYTES)
            .position(|bytes| bytes.starts_with(UTC_TIME) && bytes.ends_with(b"Z"))
            .unwrap();
        let content = begin + place + UTC_TIME.len();
        begin = content + UTC_TIME_BYTES;
        renewed[content..begin].copy_from_slice(text(time).as_bytes());
    }
    renewed
}

/// The bytes with the one place where a part of them stands made into another.
fn replaced(bytes: &[u8], part: &[u8], by: &[u8]) -> Vec<u8> {
    assert_eq!(part.len(), by.len());
    let place = bytes
        .windows(part.len())
        .position(|bytes| bytes == part)
        .unwrap();
    [&bytes[..place], by, &bytes[place + part.len()..]].concat()
}
