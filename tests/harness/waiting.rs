//! Waiting for a condition that another process or task brings about.

use std::time::{Duration, Instant};

use crate::Server;

/// Polls until the condition is met.
pub async fn until(awaited: &str, mut is_met: impl AsyncFnMut() -> bool) {
    until_some(awaited, async || is_met().await.then_some(())).await;
}

/// Polls until there is a result.
pub async fn until_some<T>(awaited: &str, mut attempt: impl AsyncFnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(result) = attempt().await {
            return result;
        }
        assert!(begun.elapsed() < PATIENCE, "no {awaited}");
        tokio::time::sleep(POLL).await;
    }
}

impl Server {
    /// Waits until the log contains these words.
    pub async fn until_logged(&self, words: &str) {
        until(words, async || self.log().contains(words)).await;
    }
}

const POLL: Duration = Duration::from_millis(2);

/// Far longer than anything takes, even on a busy machine.
const PATIENCE: Duration = Duration::from_mins(10);
