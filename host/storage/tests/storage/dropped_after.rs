//! A user that goes away in the middle of what it has begun.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
};

/// What a future comes to that is dropped when it has been polled so often; none if it was.
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
