//! The parts that log lines of several crates have in common: the id of the request that the running code works for, and durations.
//!
//! A span of `tracing` for the id would cost several times as much, because it has an entry in the subscriber's registry.

use std::{cell::Cell, future::poll_fn, pin::pin, time::Duration};

use uuid::Uuid;

/// Returns the id of the request that the running code works for.
#[must_use]
pub fn request_id() -> Option<Uuid> {
    CURRENT.get()
}

/// Runs code for a request.
pub fn with_request_id<T>(id: Option<Uuid>, code: impl FnOnce() -> T) -> T {
    let _previous = Previous(CURRENT.replace(id));
    code()
}

/// Runs a future for a request.
pub async fn await_with_request_id<F: Future>(id: Option<Uuid>, future: F) -> F::Output {
    let mut future = pin!(future);
    poll_fn(|context| with_request_id(id, || future.as_mut().poll(context))).await
}

/// Returns a duration in milliseconds, rounded to whole microseconds.
#[must_use]
pub fn duration_ms(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1_000_000.0).round() / 1_000.0
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
