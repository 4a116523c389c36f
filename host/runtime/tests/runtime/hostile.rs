//! A misbehaving guest ends its own call with a specific fault. Calls wait in bounded queues, and long calls never block short calls.

use std::{
    num::NonZeroUsize,
    pin::pin,
    sync::{Arc, Condvar, Mutex},
    time::Duration,
};

use chrono::Utc;
use keywright_core::{
    Secret,
    credential::CredentialType,
    ports::{Generator, PluginCallError, PluginFaultError},
};
use keywright_runtime::{Limits, PluginConfig, RandomError, RandomSource, SystemRandom};
use serde_json::{Value, json};
use tokio::{sync::Notify, task::JoinHandle};

use crate::{
    component, config, doing, faulted, hostile, hostile_within, is_pending, load_drawing, logged,
    no_parameters, parameters, plugin,
};

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

fn secret(text: &str) -> Secret {
    Secret::new(text.to_owned())
}

/// A source of randomness that blocks while it is closed, so that a test controls the length of a call.
#[derive(Default)]
struct Gate {
    is_open: Mutex<bool>,
    has_changed: Condvar,
    has_blocked: Notify,
}

impl Gate {
    fn set(&self, is_open: bool) {
        *self.is_open.lock().unwrap() = is_open;
        self.has_changed.notify_all();
    }

    /// Waits until a call is blocked.
    async fn blocked_call(&self) {
        self.has_blocked.notified().await;
    }
}

impl RandomSource for Gate {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), RandomError> {
        let mut is_open = self.is_open.lock().unwrap();
        if !*is_open {
            self.has_blocked.notify_one();
        }
        while !*is_open {
            is_open = self.has_changed.wait(is_open).unwrap();
        }
        SystemRandom.fill(bytes)
    }
}

/// Returns a generator with one thread and a queue of one call per lane, whose `generate` blocks at a closed gate.
fn blocked() -> (Arc<dyn Generator>, Arc<Gate>) {
    let mut config = config();
    config.sandbox.threads_per_lane = NonZeroUsize::new(1);
    config.sandbox.queue_length = 1;
    config.sandbox.retry_after_seconds = 9;
    let plugin = PluginConfig {
        limits: Limits {
            deadline_ms: 600_000,
            ..Limits::default()
        },
        ..plugin(component("hostile"), &doing("generate", "most-random"))
    };
    config.generators.insert("hostile".to_owned(), plugin);
    let gate = Arc::new(Gate::default());
    let random = Arc::clone(&gate) as Arc<dyn RandomSource>;
    let runtime = load_drawing(&config, random).unwrap();
    let hostile = CredentialType::parse("hostile").unwrap();
    (runtime.generator(&hostile).unwrap(), gate)
}

type Outcome = Result<Secret, PluginCallError>;

/// Starts a call in the background.
fn start(generator: &Arc<dyn Generator>) -> JoinHandle<Outcome> {
    let generator = Arc::clone(generator);
    tokio::spawn(async move { generate(generator.as_ref()).await })
}

#[tokio::test]
async fn a_full_queue_rejects_calls_but_not_short_ones() {
    let (generator, gate) = blocked();
    let running = start(&generator);
    gate.blocked_call().await;
    // This call is polled before the calls below, so it occupies the queue.
    let none = no_parameters();
    let mut waiting = pin!(generator.generate(&none, Utc::now(), None, Vec::new()));
    assert!(is_pending(waiting.as_mut()).await);
    for _ in 0..6 {
        let retry_after = Duration::from_secs(9);
        let refused = generate(generator.as_ref()).await;
        assert_eq!(refused, Err(PluginCallError::QueueFull { retry_after }));
    }
    for _ in 0..50 {
        assert!(generator.normalize(no_parameters()).await.is_ok());
    }
    assert!(!running.is_finished());
    gate.set(true);
    assert!(running.await.unwrap().is_ok());
    assert!(waiting.await.is_ok());
}

#[tokio::test]
async fn a_cancelled_caller_does_not_block_the_lane() {
    let (generator, gate) = blocked();
    for _ in 0..3 {
        gate.set(false);
        let left = start(&generator);
        gate.blocked_call().await;
        left.abort();
        assert!(left.await.unwrap_err().is_cancelled());
        gate.set(true);
        assert!(generate(generator.as_ref()).await.is_ok());
    }
}
