//! Background work.

use std::time::Duration;

use async_trait::async_trait;
use keywright_core::UseCaseError;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// Recurring background work.
#[async_trait]
pub(crate) trait Work: Send + 'static {
    /// Returns the name of the work's lease, the same on all servers and in all releases.
    fn name(&self) -> &'static str;

    /// Returns the time to wait after a run before checking for work again.
    fn interval(&self) -> Duration;

    /// Does all available work in small steps. Each step leaves the data consistent. Returns soon after `stop` is
    /// cancelled; [`STOP_TIME_MAX`] later, the run is dropped.
    ///
    /// # Errors
    /// If the work can't continue, for instance because the database is unavailable. The caller retries it after a
    /// pause.
    async fn run(&mut self, stop: CancellationToken) -> Result<(), UseCaseError>;
}

/// Waits for this time, or until `stop` is cancelled. Returns whether to continue.
pub(crate) async fn pause(stop: &CancellationToken, time: Duration) -> bool {
    timeout(time, stop.cancelled()).await.is_err()
}

pub(crate) const STOP_TIME_MAX: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_pause_ends_at_a_stop_request() {
        let stop = CancellationToken::new();
        assert!(pause(&stop, Duration::ZERO).await);
        stop.cancel();
        assert!(!pause(&stop, Duration::MAX).await);
    }
}
