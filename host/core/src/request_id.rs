//! The id of the request that the running code works for, which all log lines about the request contain.
//!
//! A span of `tracing` would cost several times as much, because it has an entry in the subscriber's registry.

use std::{cell::Cell, future::poll_fn, pin::pin};

use uuid::Uuid;

/// Returns the id of the request that the running code works for.
#[must_use]
pub fn current() -> Option<Uuid> {
    CURRENT.get()
}

/// Runs code for a request.
pub fn run_with<T>(id: Option<Uuid>, code: impl FnOnce() -> T) -> T {
    let _previous = Previous(CURRENT.replace(id));
    code()
}

/// Runs a future for a request.
pub async fn await_with<F: Future>(id: Option<Uuid>, future: F) -> F::Output {
    let mut future = pin!(future);
    poll_fn(|context| run_with(id, || future.as_mut().poll(context))).await
}

thread_local! {
    static CURRENT: Cell<Option<Uuid>> = const { Cell::new(None) };
}

/// The id to restore when this is dropped.
struct Previous(Option<Uuid>);

impl Drop for Previous {
    fn drop(&mut self) {
        CURRENT.set(self.0);
    }
}
