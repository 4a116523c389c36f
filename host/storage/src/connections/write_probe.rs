//! Whether the disk takes what is written.
//!
//! After a write has failed because the disk is full or broken, this module writes a little from time to time until that
//! succeeds. So a server finds out that there is room again also without requests that write.

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

/// The state of the disk, as the last writes have shown it.
#[derive(Default)]
pub(super) struct WriteState {
    is_failing: AtomicBool,
    is_closed: AtomicBool,
}

impl WriteState {
    /// Whether a write has failed for want of a working disk, and none has succeeded since.
    pub(super) fn is_failing(&self) -> bool {
        self.is_failing.load(Ordering::Acquire)
    }

    /// Ends all probing.
    pub(super) fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
    }
}

/// Notes what a write came to. The first failure of the disk begins the probing.
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
            "the database can't be written: its disk is full or does not work"
        );
        tokio::spawn(probe(writer.clone()));
    }
    outcome
}

/// Writes a little from time to time, until that succeeds.
async fn probe(writer: Writer) {
    let state = Arc::clone(&writer.state);
    loop {
        tokio::time::sleep(PROBE_INTERVAL).await;
        if state.is_closed.load(Ordering::Acquire) {
            return;
        }
        if writer.execute_unnoted(probing_write()).await.is_ok() {
            state.is_failing.store(false, Ordering::Release);
            tracing::info!("the database can be written again");
            return;
        }
    }
}

/// Changes a row that no other statement reads, so that something goes to the disk.
fn probing_write() -> Statement {
    statement(statements::PROBE).bind(uuid::Uuid::nil())
}

/// How often it is tried whether the disk takes a write again.
const PROBE_INTERVAL: Duration = Duration::from_secs(2);

pub(crate) mod statements {
    //! The SQL.

    /// No work in the background has this name.
    pub(crate) const PROBE: &str = "
        insert into lease (name, holder, expires_at) values ('write probe', $1, 0)
        on conflict (name) do update set expires_at = lease.expires_at + 1";
}
