//! The activity of a connection, from its bytes and requests. `judgement.rs` decides what follows from it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use keywright_api::Held;
use tokio::time::Instant;

use super::judgement::{State, Times, Verdict};

/// The activity of one connection.
pub(super) struct Activity(Mutex<State>);

/// A request in progress, until its response is written completely.
pub(super) struct UnderWay {
    activity: Arc<Activity>,
    /// The number of its response, once there is one.
    answer: Option<u64>,
}

impl Activity {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(State::new(Instant::now(), true))))
    }

    /// Records the end of the handshake: the client may send requests.
    pub(super) fn is_ready(&self, is_http1: bool) {
        *self.state() = State::new(Instant::now(), is_http1);
    }

    pub(super) fn request_begins(self: &Arc<Self>) -> UnderWay {
        self.state().request_begins(Instant::now());
        UnderWay {
            activity: Arc::clone(self),
            answer: None,
        }
    }

    pub(super) fn bytes_read(&self) {
        self.state().bytes_read(Instant::now());
    }

    pub(super) fn bytes_written(&self) {
        self.state().bytes_written(Instant::now());
    }

    pub(super) fn write_is_blocked(&self) {
        self.state().write_is_blocked();
    }

    /// Decides about the connection. `ending_since` is when it started to end.
    pub(super) fn verdict(&self, times: &Times, ending_since: Option<Instant>) -> Verdict {
        self.state().verdict(times, ending_since, Instant::now())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Changes are a few assignments that cannot panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl UnderWay {
    /// Records that the response is ready to be sent.
    pub(super) fn answered(mut self) -> Self {
        let answer = self.activity.state().answer_begins(Instant::now());
        self.answer = Some(answer);
        self
    }
}

impl Held for UnderWay {
    fn moved(&self) {
        if let Some(answer) = self.answer {
            self.activity.state().answer_moves(answer, Instant::now());
        }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.activity
            .state()
            .request_ends(self.answer, Instant::now());
    }
}
