//! Background work, and the signal that stops it.

use std::time::Duration;

use async_trait::async_trait;
use keywright_core::Failure;
use tokio::{sync::watch, time::sleep};

/// Recurring background work.
#[async_trait]
pub(crate) trait Work: Send + 'static {
    /// The name of the work's lease, the same on all servers and in all releases.
    fn name(&self) -> &'static str;

    /// The time to wait after a run before checking for work again.
    fn interval(&self) -> Duration;

    /// Does all available work in small steps. Each step leaves the data consistent. Returns soon after a stop request;
    /// [`STOP_TIME_MAX`] after the request, the run is cancelled.
    ///
    /// # Errors
    /// If the work can't continue, for instance because the database is unavailable. The caller retries it after a
    /// pause.
    async fn run(&mut self, stop: Stop) -> Result<(), Failure>;
}

/// Receives the request to stop work.
#[derive(Clone, Debug)]
pub(crate) struct Stop(watch::Receiver<bool>);

impl Stop {
    /// Creates a receiver: a stop is requested when the channel's value becomes true.
    pub(crate) fn requested_by(is_stopping: &watch::Sender<bool>) -> Self {
        Self(is_stopping.subscribe())
    }

    pub(crate) fn is_requested(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until a stop is requested, or the sender is dropped.
    pub(crate) async fn requested(&mut self) {
        // An error means that the sender was dropped.
        let _ = self.0.wait_for(|is_requested| *is_requested).await;
    }

    /// Waits for this time, or until a stop is requested. Returns whether to continue.
    pub(crate) async fn pause(&mut self, time: Duration) -> bool {
        tokio::select! {
            biased;
            () = self.requested() => false,
            () = sleep(time) => true,
        }
    }
}

/// Maximum time for work to stop.
pub(crate) const STOP_TIME_MAX: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_pause_ends_at_a_stop_request_or_without_a_sender() {
        let stopping = watch::Sender::new(false);
        let mut stop = Stop::requested_by(&stopping);
        assert!(!stop.is_requested());
        assert!(stop.pause(Duration::ZERO).await);
        stopping.send_replace(true);
        assert!(stop.is_requested());
        assert!(!stop.pause(Duration::MAX).await);
        let mut stop = Stop::requested_by(&watch::Sender::new(false));
        assert!(!stop.pause(Duration::MAX).await);
    }
}
