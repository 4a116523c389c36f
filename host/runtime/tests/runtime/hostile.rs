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
    assert_eq!(
        looped,
        Err(faulted("hostile", PluginFaultError::TimedOut(3_000)))
    );
}

#[tokio::test]
async fn memory_is_granted_up_to_the_limit() {
    for (mib, fault) in [
        (2, PluginFaultError::MemoryExceeded(2 * MIB)),
        (32, PluginFaultError::OutputTooLarge(128 * 1024)),
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
            Err(faulted("hostile", PluginFaultError::InputTooLarge(1024)))
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
            Err(faulted("hostile", PluginFaultError::OutputTooLarge(1024)))
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
        matches!(&refused, Err(PluginCallError::ValueRefused(rule)) if rule.to_string() == "secret must be a string"),
        "{refused:?}"
    );
    let log = logged();
    assert!(!log.contains("hunter2"));
    let keyword = r#"violates "additionalProperties" of its schema at the JSON Pointer """#;
    assert!(log.replace('\\', "").contains(keyword), "{log}");
    assert!(log.contains("plugin call failed plugin.name=\"hostile\" plugin.digest="));
    let text = r"no\nsuch\u{1b}\u{202e}thing";
    assert!(log.contains(text) || log.contains(&text.replace('\\', r"\\")));
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

fn secret(text: &str) -> Secret {
    Secret::new(text.to_owned())
}
