//! Detects whether the disk accepts writes.
//!
//! After a write fails because the disk is full or broken, this module periodically writes a little until that succeeds. So a
//! server recovers even without requests that write.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use keywright_core::ports::RepositoryFailure;

use super::Writer;
use crate::{
    failure::is_storage_medium_failure,
    statement::{Statement, statement},
};

/// The state of the disk, according to the last writes.
#[derive(Default)]
pub(super) struct WriteState {
    is_failing: AtomicBool,
    is_closed: AtomicBool,
}

impl WriteState {
    /// Whether a write has failed because of the disk, and none has succeeded since.
    pub(super) fn is_failing(&self) -> bool {
        self.is_failing.load(Ordering::Acquire)
    }

    /// Stops all probing.
    pub(super) fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
    }
}

/// Records the outcome of a write. The first disk failure starts the probe.
pub(super) fn note<T>(
    writer: &Writer,
    outcome: Result<T, RepositoryFailure>,
) -> Result<T, RepositoryFailure> {
    if let Err(failure) = &outcome
        && is_storage_medium_failure(failure)
        && !writer.state.is_failing.swap(true, Ordering::AcqRel)
    {
        tracing::error!(
            error = failure as &dyn std::error::Error,
            "can't write to the database: its disk is full or broken"
        );
        tokio::spawn(probe(writer.clone()));
    }
    outcome
}

/// Periodically writes a little, until that succeeds.
async fn probe(writer: Writer) {
    let state = Arc::clone(&writer.state);
    loop {
        tokio::time::sleep(PROBE_INTERVAL).await;
        if state.is_closed.load(Ordering::Acquire) {
            return;
        }
        if writer.execute_unnoted(probing_write()).await.is_ok() {
            state.is_failing.store(false, Ordering::Release);
            tracing::info!("writes to the database succeed again");
            return;
        }
    }
}

/// Changes a row that no other statement reads, to write to the disk.
fn probing_write() -> Statement {
    statement(statements::PROBE).bind(uuid::Uuid::nil())
}

/// The interval between probes.
const PROBE_INTERVAL: Duration = Duration::from_secs(2);

pub(crate) mod statements {

    /// No background task uses this name.
    pub(crate) const PROBE: &str = "
        insert into lease (name, holder, expires_at) values ('write probe', $1, 0)
        on conflict (name) do update set expires_at = lease.expires_at + 1";
}
