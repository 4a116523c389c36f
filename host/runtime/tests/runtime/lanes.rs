//! Calls wait in bounded queues, and long calls never block short calls.

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
    ports::{Generator, PluginCallError},
};
use keywright_runtime::{Limits, PluginConfig, RandomError, RandomSource, SystemRandom};
use tokio::{sync::Notify, task::JoinHandle};

use crate::{component, config, doing, is_pending, load_drawing, no_parameters, plugin};

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
    let generators = load_drawing(&config, random).unwrap().generators();
    let hostile = CredentialType::parse("hostile").unwrap();
    (generators.generator(&hostile).unwrap(), gate)
}

type Outcome = Result<Secret, PluginCallError>;

/// Starts a call in the background.
fn start(generator: &Arc<dyn Generator>) -> JoinHandle<Outcome> {
    let generator = Arc::clone(generator);
    tokio::spawn(async move { generate(generator.as_ref()).await })
}

async fn generate(generator: &dyn Generator) -> Outcome {
    generator
        .generate(&no_parameters(), Utc::now(), None, Vec::new())
        .await
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
