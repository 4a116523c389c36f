//! Issuers are borrowed for one call, sign once, and never expose their keys.

use std::sync::Arc;

use chrono::Utc;
use keywright_core::{
    certificate::CertificateFacts,
    ports::{CertificateIssuer, PluginCallError, PluginFaultError, SigningError},
};
use keywright_runtime::{Limits, PluginConfig};
use serde_json::Value;

use crate::{component, doing, faulted, generator, hostile, no_parameters, plugin};

const CERTIFICATE: &[u8] = b"the-certificate-of-the-issuer";
const PRIVATE_KEY: &[u8] = b"the-private-key-of-the-issuer";

/// Signs by prepending a mark that depends on its key. Rejects bodies that start with a zero byte.
struct MarkingIssuer {
    private_key: Vec<u8>,
}

impl CertificateIssuer for MarkingIssuer {
    fn certificate(&self) -> &[u8] {
        CERTIFICATE
    }

    fn subject(&self) -> &[u8] {
        b"the-subject"
    }

    fn subject_key_identifier(&self) -> Option<&[u8]> {
        None
    }

    fn signature_algorithm(&self) -> &[u8] {
        b"the-algorithm"
    }

    fn sign_certificate(&self, tbs_certificate: &[u8]) -> Result<Vec<u8>, SigningError> {
        let mark = self
            .private_key
            .iter()
            .fold(0, |mark: u8, byte| mark.wrapping_add(*byte));
        match tbs_certificate.first() {
            Some(0) => Err(SigningError("the body is not a certificate body")),
            _ => Ok([&[mark], tbs_certificate].concat()),
        }
    }

    fn signed(&self) -> Option<CertificateFacts> {
        None
    }
}

fn issuer() -> Arc<dyn CertificateIssuer> {
    Arc::new(MarkingIssuer {
        private_key: PRIVATE_KEY.to_vec(),
    })
}

async fn note(behaviour: &str) -> Result<String, PluginCallError> {
    let generator = hostile(&doing("generate", behaviour));
    let value = generator
        .generate(&no_parameters(), Utc::now(), Some(issuer()), Vec::new())
        .await?;
    let value: Value = serde_json::from_str(value.expose()).unwrap();
    Ok(value["note"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn an_issuer_signs_once_per_call() {
    let note = note("sign-twice").await.unwrap();
    assert_eq!(
        note,
        "signed 5 bytes; refused: the issuer can sign only once in a call;"
    );
}

#[tokio::test]
async fn bodies_past_64_kib_do_not_reach_the_issuer() {
    let refused = note("sign-most").await.unwrap();
    assert_eq!(refused, "refused: the body is not a certificate body;");
    let refused = note("sign-large").await.unwrap();
    assert_eq!(
        refused,
        "refused: the certificate body is larger than 64 KiB;"
    );
    let too_large = Err(faulted("hostile", PluginFaultError::OutputTooLarge));
    assert_eq!(note("sign-huge").await, too_large);
}

#[tokio::test]
async fn guest_memory_never_contains_the_private_key() {
    let limits = Limits {
        output_bytes_max: 16 << 20,
        ..Limits::default()
    };
    let settings = doing("generate", "dump");
    let plugin = PluginConfig {
        limits,
        ..plugin(component("hostile"), &settings)
    };
    let generator = generator("hostile", plugin);
    let value = generator
        .generate(&no_parameters(), Utc::now(), Some(issuer()), Vec::new())
        .await
        .unwrap();
    let value: Value = serde_json::from_str(value.expose()).unwrap();
    let dump = value["secret"].as_str().unwrap();

    assert!(dump.len() > 2 * 256 * 1024);
    // Finding the certificate shows that the search would find the key.
    assert!(dump.contains(&hexadecimal(CERTIFICATE)));
    assert!(!dump.contains(&hexadecimal(PRIVATE_KEY)));
    for part in PRIVATE_KEY
        .windows(16)
        .filter(|part| !CERTIFICATE.windows(16).any(|c| c == *part))
    {
        assert!(!dump.contains(&hexadecimal(part)));
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::new(), |digits, byte| format!("{digits}{byte:02x}"))
}
