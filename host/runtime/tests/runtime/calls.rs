//! Calls of plugins with and without optional interfaces, results and limits of a resolver, and issuers, which are borrowed for one
//! call, sign once, and never expose their keys.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use keywright_core::{
    Secret,
    certificate::CertificateFacts,
    credential::CredentialType,
    ports::{CertificateIssuer, Generator, PluginCallError, PluginFaultError, SigningError},
};
use keywright_runtime::{RandomError, RandomSource};
use serde_json::{Value, json};

use crate::{
    component, config, doing, faulted, generator, hostile, load_drawing, no_parameters, parameters,
    plugin,
};

fn plain() -> Arc<dyn Generator> {
    generator("plain", plugin(component("plain"), &json!({"size": 3})))
}

fn secret(value: &Value) -> Secret {
    Secret::new(value.to_string())
}

fn json_of(secret: &Secret) -> Value {
    serde_json::from_str(secret.expose()).unwrap()
}

#[tokio::test]
async fn randomness_only_comes_from_the_configured_source() {
    struct Constant(u8);
    impl RandomSource for Constant {
        fn fill(&self, bytes: &mut [u8]) -> Result<(), RandomError> {
            bytes.fill(self.0);
            Ok(())
        }
    }
    for (byte, expected) in [(0x11, "1111111111111111"), (0x22, "2222222222222222")] {
        let mut config = config();
        config
            .generators
            .insert("plain".to_owned(), plugin(component("plain"), &json!({})));
        let runtime = load_drawing(&config, Arc::new(Constant(byte))).unwrap();
        let generator = runtime.generator(&CredentialType::parse("plain").unwrap());
        let value = generator
            .unwrap()
            .generate(&no_parameters(), DateTime::UNIX_EPOCH, None, Vec::new())
            .await;
        assert_eq!(json_of(&value.unwrap())["secret"], expected);
    }
}

#[tokio::test]
async fn without_an_acceptor_the_host_validates_the_value() {
    let plain = plain();
    let value = json!({"secret": "0123456789abcdef"});
    assert_eq!(
        json_of(&plain.accept(&secret(&value)).await.unwrap()),
        value
    );
    for (value, violation) in [
        (
            json!({"secret": "hunter2"}),
            "secret must have at least 16 characters",
        ),
        (json!({}), "secret is required"),
        (
            json!("hunter2"),
            "must be an object with the fields given, now, secret, settings",
        ),
    ] {
        let refused = plain.accept(&secret(&value)).await;
        let Err(PluginCallError::ValueRefused(refused)) = refused else {
            panic!("accepted: {value}")
        };
        assert_eq!(refused.to_string(), violation);
    }
    let refused = plain.accept(&Secret::new("{hunter2".to_owned())).await;
    let Err(PluginCallError::ValueRefused(refused)) = refused else {
        panic!("accepted")
    };
    assert_eq!(refused.to_string(), "must be JSON");
}

#[tokio::test]
async fn numbers_in_values_are_unchanged() {
    for number in ["123456789012345678901234567890", "-0", "1.50e2"] {
        let value = |space: &str| {
            format!(r#"{{"now":{space}{number},{space}"secret":"0123456789abcdef"}}"#)
        };
        let accepted = plain().accept(&Secret::new(value(" "))).await.unwrap();
        assert_eq!(accepted.expose(), value(""));
    }
}

#[tokio::test]
async fn an_unknown_field_is_rejected_before_the_guest_is_called() {
    let value = secret(&json!({"secret": "s", "extra": 1}));
    let unknown = Err(PluginCallError::ValueFieldUnknown("extra".to_owned()));
    assert_eq!(plain().accept(&value).await, unknown);
    assert_eq!(
        hostile(&json!({"accept": "trap"})).accept(&value).await,
        unknown
    );
}

#[tokio::test]
async fn without_a_recoverer_the_stored_parameters_are_returned() {
    let value = secret(&json!({"secret": "s"}));
    let stored = parameters(&json!({"length": 4}));
    let found = plain()
        .recover(Some(&stored), &value)
        .await
        .unwrap()
        .unwrap();
    assert!(found.is_complete && found.parameters == stored);
    assert!(plain().recover(None, &value).await.unwrap().is_none());
}

#[tokio::test]
async fn a_recoverer_never_sees_a_secret_field() {
    let value = secret(&json!({"secret": "hunter2", "note": "n"}));
    let stored = parameters(&json!({"a": 1}));
    let found = hostile(&json!({}))
        .recover(Some(&stored), &value)
        .await
        .unwrap()
        .unwrap();
    assert!(!found.is_complete);
    let seen = json!({"parameters": r#"{"a":1}"#, "value": r#"{"note":"n"}"#});
    assert_eq!(found.parameters, parameters(&seen));
}

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
    assert_eq!(refused, "refused: the body must have at most 64 KiB;");
    let too_large = Err(faulted(
        "hostile",
        PluginFaultError::OutputTooLarge(128 * 1024),
    ));
    assert_eq!(note("sign-huge").await, too_large);
}
