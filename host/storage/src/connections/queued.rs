//! Queued work, which the consumer begins or the caller gives up.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use keywright_core::ports::RepositoryFailure;
use tokio::{sync::oneshot, time::timeout};

use crate::failure::repository_failure;

/// Queued work. Whichever of the consumer and the caller takes it first decides whether it runs. If either drops it before, it
/// never begins.
pub(crate) struct Queued<W>(Shared<W>);

/// The caller's handle to queued work.
pub(crate) struct Caller<W>(Queued<W>);

/// The work and its reference for the count. `None` once it is taken.
type Shared<W> = Arc<Mutex<Option<(W, Arc<()>)>>>;

/// Counts callers that wait, or queued work that has not begun, by its references.
#[derive(Default)]
pub(crate) struct Waiting(Arc<()>);

impl Waiting {
    /// Returns work for the consumer of a queue, and the caller's handle to it.
    pub(crate) fn queued<W>(&self, work: W) -> (Queued<W>, Caller<W>) {
        let shared = Arc::new(Mutex::new(Some((work, self.enter()))));
        (Queued(Arc::clone(&shared)), Caller(Queued(shared)))
    }

    /// Counts a caller that waits, until the result is dropped.
    pub(super) fn enter(&self) -> Arc<()> {
        Arc::clone(&self.0)
    }

    pub(crate) fn count(&self) -> usize {
        Arc::strong_count(&self.0) - 1
    }
}

impl<W> Queued<W> {
    /// Takes the work to begin it. Returns `None` if the caller gave it up.
    pub(crate) fn begin(&self) -> Option<W> {
        let mut shared = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        shared.take().map(|(work, _)| work)
    }
}

impl<W> Caller<W> {
    /// Waits for the outcome of the work. Waits for at most `wait_max` until it begins.
    ///
    /// # Errors
    /// [`RepositoryFailure::Unavailable`] if it does not begin in time, or if the consumer has ended.
    pub(crate) async fn outcome<T>(
        self,
        mut outcome: oneshot::Receiver<T>,
        wait_max: Duration,
    ) -> Result<T, RepositoryFailure> {
        let outcome = match timeout(wait_max, &mut outcome).await {
            Err(_) if self.0.begin().is_some() => {
                return Err(repository_failure(sqlx::Error::PoolTimedOut));
            }
            // Work that has begun has no time limit here: the database ends it.
            Err(_) => outcome.await,
            Ok(outcome) => outcome,
        };
        outcome.map_err(|_| repository_failure(sqlx::Error::PoolClosed))
    }
}

impl<W> Drop for Queued<W> {
    fn drop(&mut self) {
        self.begin();
    }
}
