//! Calls of plugins with and without optional interfaces.

use std::sync::Arc;

use chrono::DateTime;
use keywright_core::{
    Secret,
    credential::CredentialType,
    ports::{Generator, PluginCallError, PluginFaultError},
};
use keywright_runtime::{RandomError, RandomSource};
use serde_json::{Value, json};

use crate::{
    component, config, faulted, generator, hostile, load_drawing, no_parameters, parameters, plugin,
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
async fn a_call_fails_if_the_source_of_randomness_fails() {
    struct Failing;
    impl RandomSource for Failing {
        fn fill(&self, _: &mut [u8]) -> Result<(), RandomError> {
            Err(RandomError)
        }
    }
    let mut config = config();
    config
        .generators
        .insert("plain".to_owned(), plugin(component("plain"), &json!({})));
    let runtime = load_drawing(&config, Arc::new(Failing)).unwrap();
    let generator = runtime.generator(&CredentialType::parse("plain").unwrap());
    let value = generator
        .unwrap()
        .generate(&no_parameters(), DateTime::UNIX_EPOCH, None, Vec::new())
        .await;
    assert_eq!(value, Err(faulted("plain", PluginFaultError::Trapped)));
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
