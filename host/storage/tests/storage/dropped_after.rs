//! Dropping a future before it completes.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
};

/// Polls a future at most this many times, then drops it. Returns its output, or `None` if it was dropped.
pub(crate) async fn dropped_after<F: Future>(polls: usize, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut polled = 0;
    poll_fn(|context| {
        polled += 1;
        match future.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if polled == polls => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}
