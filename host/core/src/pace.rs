//! Yielding to the scheduler in loops that decrypt, so that requests on the same thread can run.

use std::task::Poll;

/// The number of versions to decrypt or encrypt before yielding: less than a millisecond of work even for the largest
/// versions.
pub(crate) const STEPS_BEFORE_YIELD: usize = 8;

/// Counts the steps of a loop.
#[derive(Default)]
pub(crate) struct Pace {
    steps: usize,
}

impl Pace {
    /// Starts the next step. Yields before every step whose number is a multiple of [`STEPS_BEFORE_YIELD`].
    pub(crate) async fn step(&mut self) {
        self.steps += 1;
        if self.steps.is_multiple_of(STEPS_BEFORE_YIELD) {
            yield_now().await;
        }
    }
}

async fn yield_now() {
    let mut has_yielded = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut has_yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
