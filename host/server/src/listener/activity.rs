//! What goes on on one connection, as its bytes and its requests tell. What follows from it is in `judgement.rs`.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use keywright_api::Held;
use tokio::time::Instant;

use super::judgement::{State, Times, Verdict};

/// What goes on on one connection, as its bytes and its requests tell.
pub(super) struct Activity(Mutex<State>);

/// One request under way: while its answer is made, and until that is handed to the connection whole.
pub(super) struct UnderWay {
    activity: Arc<Activity>,
    /// The number of its answer, once that is there.
    answer: Option<u64>,
}

impl Activity {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(State::new(Instant::now(), true))))
    }

    /// The handshake is over: from now on the client may ask.
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

    /// What is to be done with the connection, which has been ending since this time, if it is.
    pub(super) fn verdict(&self, times: &Times, ending_since: Option<Instant>) -> Verdict {
        self.state().verdict(times, ending_since, Instant::now())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each change is one assignment or a few; none can panic between them.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl UnderWay {
    /// The answer is there, and is to be sent.
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
