//! Calls wait in bounded queues, and long ones never hold up short ones.

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
    ports::{Generator, PluginFailure},
};
use keywright_runtime::{Limits, PluginConfig, RandomSource, RandomUnavailable, SystemRandom};
use tokio::{sync::Notify, task::JoinHandle};

use crate::support::{component, config, doing, is_under_way, load_drawing, no_parameters, plugin};

/// A source of randomness that holds up who draws from it while it is closed: so a call can be as long as a test needs it.
#[derive(Default)]
struct Gate {
    is_open: Mutex<bool>,
    has_changed: Condvar,
    holds: Notify,
}

impl Gate {
    fn set(&self, is_open: bool) {
        *self.is_open.lock().unwrap() = is_open;
        self.has_changed.notify_all();
    }

    /// Waits until a call is held up here.
    async fn held(&self) {
        self.holds.notified().await;
    }
}

impl RandomSource for Gate {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), RandomUnavailable> {
        let mut is_open = self.is_open.lock().unwrap();
        if !*is_open {
            self.holds.notify_one();
        }
        while !*is_open {
            is_open = self.has_changed.wait(is_open).unwrap();
        }
        SystemRandom.fill(bytes)
    }
}

/// A generator with one thread and one waiting place a lane, whose `generate` draws from a gate that is closed.
fn held_up() -> (Arc<dyn Generator>, Arc<Gate>) {
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

type Outcome = Result<Secret, PluginFailure>;

/// Begins a call, which goes on by itself.
fn begin(generator: &Arc<dyn Generator>) -> JoinHandle<Outcome> {
    let generator = Arc::clone(generator);
    tokio::spawn(async move { generate(generator.as_ref()).await })
}

async fn generate(generator: &dyn Generator) -> Outcome {
    generator.generate(&no_parameters(), Utc::now(), None).await
}

#[tokio::test]
async fn a_full_queue_is_refused_and_short_calls_go_on() {
    let (generator, gate) = held_up();
    let running = begin(&generator);
    gate.held().await;
    // Both are asked in turn, on this one thread: the first of them takes the place.
    let none = no_parameters();
    let mut waiting = pin!(generator.generate(&none, Utc::now(), None));
    assert!(is_under_way(waiting.as_mut()).await);
    for _ in 0..6 {
        let retry_after = Duration::from_secs(9);
        let refused = generate(generator.as_ref()).await;
        assert_eq!(refused, Err(PluginFailure::QueueFull { retry_after }));
    }
    for _ in 0..50 {
        assert!(generator.normalize(&no_parameters()).await.is_ok());
    }
    assert!(!running.is_finished());
    gate.set(true);
    assert!(running.await.unwrap().is_ok());
    assert!(waiting.await.is_ok());
}

#[tokio::test]
async fn a_caller_who_leaves_does_not_harm_the_lane() {
    let (generator, gate) = held_up();
    for _ in 0..3 {
        gate.set(false);
        let left = begin(&generator);
        gate.held().await;
        left.abort();
        assert!(left.await.unwrap_err().is_cancelled());
        gate.set(true);
        assert!(generate(generator.as_ref()).await.is_ok());
    }
}
