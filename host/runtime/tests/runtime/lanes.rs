//! Calls wait in bounded queues, and long ones never hold up short ones.

use std::{num::NonZeroUsize, sync::Arc, time::Duration};

use chrono::Utc;
use keywright_core::{
    credential::CredentialType,
    ports::{Generator, PluginFailure, PluginFault},
};
use keywright_runtime::{Limits, PluginConfig};
use tokio::time::timeout;

use crate::support::{component, config, doing, faulted, load, no_parameters, plugin};

/// A generator with one thread and one waiting place a lane, whose `generate` loops until its deadline.
fn looping(deadline_ms: u64) -> Arc<dyn Generator> {
    let mut config = config();
    config.sandbox.threads_per_lane = NonZeroUsize::new(1);
    config.sandbox.queue_length = 1;
    config.sandbox.retry_after_seconds = 9;
    let plugin = PluginConfig {
        limits: Limits {
            deadline_ms,
            ..Limits::default()
        },
        ..plugin(component("hostile"), &doing("generate", "loop"))
    };
    config.generators.insert("hostile".to_owned(), plugin);
    let generators = load(&config).unwrap().generators();
    generators
        .generator(&CredentialType::parse("hostile").unwrap())
        .unwrap()
}

#[tokio::test]
async fn a_full_queue_is_refused_and_short_calls_go_on() {
    let generator = looping(600);
    let calls = (0..8).map(|_| {
        let generator = Arc::clone(&generator);
        tokio::spawn(async move { generator.generate(&no_parameters(), Utc::now(), None).await })
    });
    let calls: Vec<_> = calls.collect();
    for _ in 0..50 {
        let none = no_parameters();
        let normalized = timeout(Duration::from_millis(500), generator.normalize(&none)).await;
        assert!(normalized.unwrap().is_ok());
    }
    let mut refused = 0;
    for call in calls {
        match call.await.unwrap() {
            Err(PluginFailure::QueueFull { retry_after }) => {
                assert_eq!(retry_after, Duration::from_secs(9));
                refused += 1;
            }
            outcome => assert_eq!(outcome, Err(faulted("hostile", PluginFault::TimedOut))),
        }
    }
    // One runs and one waits; the thread may have taken the first before the second came.
    assert!((6..=7).contains(&refused), "{refused}");
}

#[tokio::test]
async fn a_caller_who_leaves_does_not_harm_the_lane() {
    let generator = looping(200);
    for _ in 0..3 {
        let none = no_parameters();
        let call = generator.generate(&none, Utc::now(), None);
        assert!(timeout(Duration::from_millis(20), call).await.is_err());
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
    let outcome = generator.generate(&no_parameters(), Utc::now(), None).await;
    assert_eq!(outcome, Err(faulted("hostile", PluginFault::TimedOut)));
}
