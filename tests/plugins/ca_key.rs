//! The private key of a CA is never in a guest's memory, not even while the guest uses the CA.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test ends when what it needs is not there"
)]

use keywright_harness::{Options, Server, component};
use serde_json::{Value, json};
use x509_parser::{certificate::X509Certificate, pem::parse_x509_pem, prelude::FromDer};

use crate::hexadecimal::hexadecimal;

/// The offset of the secret part of a PKCS#1 key of 2048 bits: after version, modulus and public exponent.
const SECRET_PART_BEGINS: usize = 4 + 3 + 261 + 5;

/// The maximum number of attempts until a call starts and ends in the same second.
const ATTEMPTS_MAX: usize = 20;

/// The length of the fragments to search for, in bytes.
const FRAGMENT_BYTES: usize = 16;

#[tokio::test]
async fn ca_key_is_never_in_guest_memory() {
    let server = server().await;
    let root = json!({"common_name": "root", "is_ca": true});
    let root = server
        .generate("/root", "certificate", root)
        .await
        .expect(200)
        .json();
    let leaf = json!({"common_name": "leaf", "ca": "/root", "duration": 2});
    let leaf = server
        .generate("/leaf", "certificate", leaf)
        .await
        .expect(200)
        .json();

    let pem = root["value"]["private_key"].as_str().unwrap();
    let modulus = &der(pem)[20..20 + FRAGMENT_BYTES];
    let secrets = fragments(pem);
    let mut masked = vec![inverted(modulus)];
    masked.extend(secrets.iter().map(|secret| inverted(secret)));
    let note = note_of_signing(&server, &leaf, &masked).await;
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

/// Returns the guest's note after its issuer has signed. The validity must start in the second of the call, so the call is retried if
/// the second passes.
async fn note_of_signing(server: &Server, leaf: &Value, masked: &[String]) -> String {
    for _ in 0..ATTEMPTS_MAX {
        let parameters = json!({
            "ca": "/root",
            "masked": masked,
            "tbs_certificate": hexadecimal(&renewed_body(leaf)),
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

async fn server() -> Server {
    let section = format!(
        "component = \"{}\"\ngrants = [\"random\", \"signing\"]\nderived = true\nsettings = {{ generate = \"search\" }}",
        component("hostile").display(),
    );
    Server::start_with(&Options::default().generator("hostile", &section)).await
}

/// Returns every fragment of the secret part of a key: of its DER, of its DER with reversed bytes (the byte order of arithmetic), and
/// of its PEM.
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

/// Returns the body of a certificate with a validity that starts now, so that its CA signs it again.
fn renewed_body(version: &Value) -> Vec<u8> {
    let der = der(version["value"]["certificate"].as_str().unwrap());
    let (_, certificate) = X509Certificate::from_der(&der).unwrap();
    let mut body = certificate.tbs_certificate.as_ref().to_vec();
    let begin = chrono::Utc::now();
    let validity = certificate.validity();
    for (old, new) in [
        (validity.not_before, begin),
        (validity.not_after, begin + chrono::Duration::days(1)),
    ] {
        let utc_time =
            |time: chrono::DateTime<chrono::Utc>| time.format("%y%m%d%H%M%SZ").to_string();
        let old = utc_time(chrono::DateTime::from_timestamp(old.timestamp(), 0).unwrap());
        let position = body
            .windows(old.len())
            .position(|bytes| bytes == old.as_bytes())
            .unwrap();
        body[position..position + old.len()].copy_from_slice(utc_time(new).as_bytes());
    }
    body
}

fn der(pem: &str) -> Vec<u8> {
    parse_x509_pem(pem.as_bytes()).unwrap().1.contents
}

fn inverted(bytes: &[u8]) -> String {
    hexadecimal(&bytes.iter().map(|byte| !byte).collect::<Vec<_>>())
}
