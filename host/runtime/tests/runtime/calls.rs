//! Calls of plugins with and without optional interfaces, and results and limits of a resolver.

use std::sync::Arc;

use chrono::DateTime;
use keywright_core::{
    Secret,
    permission::Actor,
    ports::{Generator, PluginCallError, Reference},
};
use keywright_runtime::{RandomError, RandomSource};
use serde_json::{Value, json};

use crate::{
    component, config, doing, generator, hostile, hostile_resolver, load_drawing, no_parameters,
    parameters, plugin,
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
async fn a_guest_gets_its_parameters_settings_and_the_time() {
    let now = DateTime::from_timestamp(1_700_000_000, 0).unwrap();
    let given = parameters(&json!({"label": "é"}));
    let value = json_of(
        &plain()
            .generate(&given, now, None, Vec::new())
            .await
            .unwrap(),
    );
    assert_eq!(value["given"], json!({"label": "é"}));
    assert_eq!(value["settings"], json!({"size": 3}));
    assert_eq!(value["now"], 1_700_000_000);
}

#[tokio::test]
async fn the_identity_has_name_version_and_digest() {
    let plain = plain();
    let identity = plain.identity();
    assert_eq!(identity.name, "plain");
    assert_eq!(identity.version, env!("CARGO_PKG_VERSION"));
    assert_eq!(identity.digest.len(), 64);
    assert_eq!(identity.interface_version, "0.2.0");
    assert_eq!(plain.issuer_parameter(), None);
    assert_eq!(hostile(&json!({})).issuer_parameter(), Some("ca"));
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
        let types = runtime.generators().credential_types();
        let generator = runtime.generators().generator(&types[0]).unwrap();
        let value = generator
            .generate(&no_parameters(), DateTime::UNIX_EPOCH, None, Vec::new())
            .await;
        assert_eq!(json_of(&value.unwrap())["secret"], expected);
    }
}

#[tokio::test]
async fn without_a_normalizer_the_host_applies_the_schema() {
    let plain = plain();
    let canonical = plain
        .normalize(parameters(&json!({"label": "x"})))
        .await
        .unwrap();
    assert_eq!(canonical, parameters(&json!({"label": "x", "length": 4})));
    for (given, violation) in [
        (json!({"hunter": 1}), "hunter is unknown"),
        (json!({"length": 10}), "length must be at most 9"),
        (json!({"label": 7}), "label must be of type string"),
    ] {
        let refused = plain.normalize(parameters(&given)).await;
        let Err(PluginCallError::ParametersRefused(refused)) = refused else {
            panic!("accepted")
        };
        assert_eq!(refused.to_string(), violation);
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
        (json!("hunter2"), "must be of type object"),
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

#[tokio::test]
async fn the_resolver_gets_the_document_and_returns_references() {
    let found = hostile_resolver(&json!({}))
        .find_references(&actor(), r#"{"a":1}"#)
        .await
        .unwrap();
    let expected = Reference {
        pointer: "/a".to_owned(),
        name: r#"{"a":1}"#.to_owned(),
        ..Reference::default()
    };
    assert_eq!(found, [expected]);
}

#[tokio::test]
async fn the_reason_of_a_refusal_is_truncated_and_printable() {
    let resolver = hostile_resolver(&doing("find-references", "refuse-document"));
    let Err(PluginCallError::DocumentRefused(text)) =
        resolver.find_references(&actor(), "{}").await
    else {
        panic!("not refused");
    };
    assert!(text.starts_with("noxxx") && text.len() == 1023, "{text}");
}

fn actor() -> Actor {
    Actor::of_lookup("uaa-client:app")
}
