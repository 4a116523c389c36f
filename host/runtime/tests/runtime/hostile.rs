//! A misbehaving guest ends its own call with a specific fault.

use chrono::Utc;
use keywright_core::{
    Secret,
    ports::{Generator, PluginCallError, PluginFaultError},
};
use keywright_runtime::Limits;
use serde_json::{Value, json};

use crate::{doing, faulted, hostile, hostile_within, logged, no_parameters, parameters};

const MIB: u64 = 1024 * 1024;

#[tokio::test]
async fn short_calls_have_a_deadline_of_their_own() {
    let limits = Limits {
        deadline_ms: 600_000,
        ..Limits::default()
    };
    let generator = hostile_within(&doing("normalize", "loop"), limits);
    let looped = generator.normalize(no_parameters()).await;
    assert_eq!(looped, Err(faulted("hostile", PluginFaultError::TimedOut)));
}

#[tokio::test]
async fn memory_is_granted_up_to_the_limit() {
    for (mib, fault) in [
        (2, PluginFaultError::MemoryExceeded),
        (32, PluginFaultError::OutputTooLarge),
    ] {
        let limits = Limits {
            memory_bytes_max: mib * MIB,
            ..Limits::default()
        };
        let generator = hostile_within(&doing("generate", "large-output"), limits);
        assert_eq!(
            generate(generator.as_ref()).await,
            Err(faulted("hostile", fault)),
            "{mib}"
        );
    }
}

#[tokio::test]
async fn input_one_byte_past_the_limit_including_settings_fails() {
    let limits = Limits {
        input_bytes_max: 1024,
        ..Limits::default()
    };
    let generator = hostile_within(&json!({}), limits);
    let envelope = "{}".len() + r#"{"a":""}"#.len();
    for (length, fits) in [(1024 - envelope, true), (1025 - envelope, false)] {
        let given = parameters(&json!({"a": "x".repeat(length)}));
        let outcome = generator.normalize(given.clone()).await.map(|_| ());
        let expected = if fits {
            Ok(())
        } else {
            Err(faulted("hostile", PluginFaultError::InputTooLarge))
        };
        assert_eq!(outcome, expected, "{length}");
        let outcome = generator
            .generate(&given, Utc::now(), None, Vec::new())
            .await
            .map(|_| ());
        assert_eq!(outcome, expected, "{length}");
    }
}

#[tokio::test]
async fn output_one_byte_past_the_limit_fails() {
    let limits = Limits {
        output_bytes_max: 1024,
        ..Limits::default()
    };
    let generator = hostile_within(&json!({}), limits);
    let envelope = r#"{"a":""}"#.len();
    for (length, fits) in [(1024 - envelope, true), (1025 - envelope, false)] {
        let given = parameters(&json!({"a": "x".repeat(length)}));
        let outcome = generator.normalize(given.clone()).await.map(|_| ());
        let expected = if fits {
            Ok(())
        } else {
            Err(faulted("hostile", PluginFaultError::OutputTooLarge))
        };
        assert_eq!(outcome, expected, "{length}");
    }
}

#[tokio::test]
async fn a_mebibyte_of_randomness_is_granted() {
    let value = value(hostile(&doing("generate", "most-random")).as_ref()).await;
    assert_eq!(value["note"], "1048576");
}

#[tokio::test]
async fn refusals_of_guests_are_truncated_and_printable() {
    for function in ["normalize", "generate", "accept", "recover"] {
        for behaviour in ["refuse-parameters", "refuse-value"] {
            let generator = hostile(&doing(function, behaviour));
            let refused = call(generator.as_ref(), function).await.unwrap_err();
            let violation = match (behaviour, refused) {
                ("refuse-parameters", PluginCallError::ParametersRefused(violation))
                | ("refuse-value", PluginCallError::ValueRefused(violation)) => violation,
                (_, other) => panic!("{function}, {behaviour}: {other:?}"),
            };
            assert_eq!(violation.field.as_deref(), Some("length"));
            assert_eq!(violation.rule.len(), 1024 - "\r\n".len());
            assert!(violation.rule.starts_with("noxxx"));
        }
    }
}

#[tokio::test]
async fn faults_are_logged_with_the_plugin_but_without_data() {
    for behaviour in [
        "panic",
        "not-json",
        "unknown-member",
        "misconfigured",
        "other",
    ] {
        let generator = hostile(&doing("generate", behaviour));
        assert!(generate(generator.as_ref()).await.is_err());
    }
    let accepted = hostile(&json!({}))
        .accept(&secret(r#"{"secret":"hunter2"}"#))
        .await;
    assert!(accepted.is_ok());
    let refused = hostile(&json!({}))
        .accept(&secret(r#"{"secret":7,"note":"hunter2"}"#))
        .await;
    assert!(
        matches!(&refused, Err(PluginCallError::ValueRefused(rule)) if rule.to_string() == "secret must be of type string"),
        "{refused:?}"
    );
    let log = logged();
    assert!(!log.contains("hunter2"));
    let keyword = r#"violates "additionalProperties" of its schema at the JSON Pointer """#;
    assert!(log.replace('\\', "").contains(keyword), "{log}");
    assert!(log.contains("plugin call failed plugin.name=\"hostile\" plugin.digest="));
    assert!(log.contains(r"no\nsuch\u{1b}thing") || log.contains(r"no\\nsuch\\u{1b}thing"));
    assert!(log.contains(&"x".repeat(1024)) && !log.contains(&"x".repeat(1025)));
}

async fn generate(generator: &dyn Generator) -> Result<Secret, PluginCallError> {
    generator
        .generate(&no_parameters(), Utc::now(), None, Vec::new())
        .await
}

async fn value(generator: &dyn Generator) -> Value {
    serde_json::from_str(generate(generator).await.unwrap().expose()).unwrap()
}

async fn call(generator: &dyn Generator, function: &str) -> Result<(), PluginCallError> {
    let value = secret(r#"{"secret":"s"}"#);
    match function {
        "normalize" => generator.normalize(no_parameters()).await.map(|_| ()),
        "generate" => generate(generator).await.map(|_| ()),
        "accept" => generator.accept(&value).await.map(|_| ()),
        _ => generator.recover(None, &value).await.map(|_| ()),
    }
}

fn secret(text: &str) -> Secret {
    Secret::new(text.to_owned())
}
