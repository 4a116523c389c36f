//! The share of a pool's connections that long reads may use. Point reads always find one of the others.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::queued::Waiting;

/// The connections that long reads may use at a time.
#[derive(Clone)]
pub(super) struct LongReads {
    slots: Arc<Semaphore>,
    waiting: Arc<Waiting>,
}

impl LongReads {
    /// Returns the share of a pool of this size: half of it, but at least one connection.
    pub(super) fn in_pool_of(connections_max: usize) -> Self {
        let slots = (connections_max / SHARE_OF_POOL).max(1);
        Self {
            slots: Arc::new(Semaphore::new(slots)),
            waiting: Arc::default(),
        }
    }

    /// Waits until a long read may check out a connection. The read holds the result until its end.
    pub(super) async fn begin(&self) -> sqlx::Result<OwnedSemaphorePermit> {
        let _waiting = self.waiting.enter();
        let slot = Arc::clone(&self.slots).acquire_owned().await;
        slot.map_err(|_| sqlx::Error::PoolClosed)
    }

    /// Returns the number of long reads that wait.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.count()
    }

    /// Refuses long reads that have not begun.
    pub(super) fn close(&self) {
        self.slots.close();
    }
}

/// One of this many connections may be used by a long read.
const SHARE_OF_POOL: usize = 2;
