//! Decides whether a connection may stay open.

use std::{collections::HashMap, time::Duration};

use tokio::time::Instant;

/// Maximum times to wait for a client.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    /// For the head of a request.
    pub(super) head: Duration,
    /// Without a request in progress.
    pub(super) idle: Duration,
    /// Without accepting data of one response, no matter what else it receives or requests.
    pub(super) write: Duration,
    /// For the whole connection.
    pub(super) connection: Duration,
}

/// A decision about a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Do nothing until this time, then decide again.
    Wait(Instant),
    /// Accept no new requests, and close after the requests in progress.
    End(&'static str),
    /// Close immediately.
    Cut(&'static str),
}

/// The state of one connection.
pub(super) struct State {
    begun: Instant,
    is_http1: bool,
    has_asked: bool,
    /// The number of requests being processed.
    working: usize,
    /// Responses not yet written completely, by number, and when data of each was last accepted.
    answers: HashMap<u64, Instant>,
    answers_begun: u64,
    /// When the last request started.
    begun_last: Instant,
    /// When the last request or response ended, or when the connection became ready.
    free_since: Instant,
    /// When the first byte of the next request arrived. Unknown for HTTP/2, where other bytes arrive, too.
    head_since: Option<Instant>,
    bytes_written: Instant,
    is_write_blocked: bool,
}

impl State {
    pub(super) fn new(now: Instant, is_http1: bool) -> Self {
        Self {
            begun: now,
            is_http1,
            has_asked: false,
            working: 0,
            answers: HashMap::new(),
            answers_begun: 0,
            begun_last: now,
            free_since: now,
            head_since: None,
            bytes_written: now,
            is_write_blocked: false,
        }
    }

    fn is_free(&self) -> bool {
        self.working == 0 && self.answers.is_empty()
    }

    pub(super) fn bytes_read(&mut self, now: Instant) {
        if self.is_http1 && self.is_free() {
            self.head_since.get_or_insert(now);
        }
    }

    pub(super) fn bytes_written(&mut self, now: Instant) {
        self.bytes_written = now;
        self.is_write_blocked = false;
    }

    pub(super) fn write_is_blocked(&mut self) {
        self.is_write_blocked = true;
    }

    pub(super) fn request_begins(&mut self, now: Instant) {
        self.has_asked = true;
        self.begun_last = now;
        self.head_since = None;
        self.working = self.working.saturating_add(1);
    }

    pub(super) fn answer_begins(&mut self, now: Instant) -> u64 {
        self.working = self.working.saturating_sub(1);
        self.answers_begun = self.answers_begun.wrapping_add(1);
        self.answers.insert(self.answers_begun, now);
        self.answers_begun
    }

    pub(super) fn answer_moves(&mut self, answer: u64, now: Instant) {
        if let Some(moved) = self.answers.get_mut(&answer) {
            *moved = now;
        }
    }

    pub(super) fn request_ends(&mut self, answer: Option<u64>, now: Instant) {
        match answer {
            Some(answer) => {
                self.answers.remove(&answer);
            }
            None => self.working = self.working.saturating_sub(1),
        }
        if self.is_free() {
            self.free_since = now;
        }
    }

    /// Decides about the connection. `ending_since` is when it started to end.
    pub(super) fn verdict(
        &self,
        times: &Times,
        ending_since: Option<Instant>,
        now: Instant,
    ) -> Verdict {
        let due = self.due(times, ending_since);
        let age = match ending_since {
            Some(_) => None,
            None => Some((
                self.begun + times.connection,
                Verdict::End("maximum connection time exceeded"),
            )),
        };
        // No event from now on shortens the wait further than this.
        let shortest = match ending_since {
            Some(_) => times.write.min(QUIET_TIME),
            None => times.head.min(times.idle).min(times.write),
        };
        let mut wake = now + shortest;
        for (instant, verdict) in [due, age].into_iter().flatten() {
            if instant <= now {
                return verdict;
            }
            wake = wake.min(instant);
        }
        Verdict::Wait(wake)
    }

    /// Returns when waiting for the client ends, in the current state.
    fn due(&self, times: &Times, ending_since: Option<Instant>) -> Option<(Instant, Verdict)> {
        if let Some(since) = ending_since
            && self.begun_last > since + ENDING_TIME
        {
            let verdict = Verdict::Cut("the client keeps sending requests on a closing connection");
            return Some((self.begun_last, verdict));
        }
        if let Some(moved) = self.answers.values().min() {
            let verdict = Verdict::Cut("the client does not accept a response");
            return Some((*moved + times.write, verdict));
        }
        if self.working > 0 {
            return None;
        }
        if let Some(since) = ending_since {
            return Some((
                self.quiet_from(since, times),
                Verdict::Cut("the client does not close the connection"),
            ));
        }
        if !self.has_asked {
            let verdict = Verdict::Cut("no first request arrived in time");
            return Some((self.free_since + times.head, verdict));
        }
        let idle = (
            self.free_since + times.idle,
            Verdict::End("maximum idle time exceeded"),
        );
        match self.head_since.map(|since| since + times.head) {
            Some(head) if head < idle.0 => {
                Some((head, Verdict::Cut("the head of a request took too long")))
            }
            _ => Some(idle),
        }
    }

    /// Returns when a closing connection without requests is cut off. A transfer in progress may continue, but not
    /// forever.
    fn quiet_from(&self, ending_since: Instant, times: &Times) -> Instant {
        let since = ending_since.max(self.free_since);
        let at_the_latest = since + times.idle.max(QUIET_TIME);
        if self.is_write_blocked {
            return at_the_latest;
        }
        at_the_latest.min(since.max(self.bytes_written) + QUIET_TIME)
    }
}

/// Maximum silence on a closing connection: far longer than a client needs to react.
const QUIET_TIME: Duration = Duration::from_secs(2);

/// Maximum time in which a client may start requests on a closing connection: far longer than a client needs to react.
/// Over HTTP/2, a client may start requests until it acknowledges the shutdown.
const ENDING_TIME: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    const TIMES: Times = Times {
        head: Duration::from_secs(10),
        idle: Duration::from_secs(100),
        write: Duration::from_secs(20),
        connection: Duration::from_secs(1_000),
    };

    /// A time, in seconds since the start.
    fn at(begun: Instant, seconds: u64) -> Instant {
        begun + Duration::from_secs(seconds)
    }

    #[track_caller]
    fn expect_first(
        state: &State,
        ending_since: Option<Instant>,
        seconds: u64,
        is_expected: fn(Verdict) -> bool,
    ) {
        let before = state.verdict(&TIMES, ending_since, at(state.begun, seconds - 1));
        assert!(matches!(before, Verdict::Wait(_)), "{before:?}");
        let then = state.verdict(&TIMES, ending_since, at(state.begun, seconds));
        assert!(is_expected(then), "{then:?}");
    }

    fn is_cut(verdict: Verdict) -> bool {
        matches!(verdict, Verdict::Cut(_))
    }

    fn is_end(verdict: Verdict) -> bool {
        matches!(verdict, Verdict::End(_))
    }

    #[test]
    fn the_first_request_must_arrive_within_the_head_time() {
        for is_http1 in [true, false] {
            let begun = Instant::now();
            let mut state = State::new(begun, is_http1);
            for seconds in 0..10 {
                state.bytes_read(at(begun, seconds));
            }
            expect_first(&state, None, 10, is_cut);
        }
    }

    #[test]
    fn a_later_head_is_timed_from_its_first_byte() {
        let begun = Instant::now();
        let mut state = after_one_request(begun, 5);
        state.bytes_read(at(begun, 50));
        state.bytes_read(at(begun, 59));
        expect_first(&state, None, 60, is_cut);
    }

    #[test]
    fn bytes_without_a_request_do_not_keep_http2_open() {
        let begun = Instant::now();
        let mut state = after_one_request(begun, 5);
        state.is_http1 = false;
        for seconds in 5..105 {
            state.bytes_read(at(begun, seconds));
        }
        expect_first(&state, None, 105, is_end);
    }

    #[test]
    fn a_request_in_progress_is_not_cut_off() {
        let begun = Instant::now();
        let mut state = State::new(begun, true);
        state.request_begins(begun);
        expect_first(&state, None, 1_000, is_end);
        let ending = Some(at(begun, 1_000));
        let verdict = state.verdict(&TIMES, ending, at(begun, 5_000));
        assert!(matches!(verdict, Verdict::Wait(_)), "{verdict:?}");
    }

    #[test]
    fn a_response_must_be_accepted_within_the_write_time() {
        let begun = Instant::now();
        let mut state = State::new(begun, true);
        state.request_begins(begun);
        state.answer_begins(at(begun, 30));
        expect_first(&state, None, 50, is_cut);
    }

    #[test]
    fn an_unaccepted_response_is_cut_off_despite_other_requests() {
        let begun = Instant::now();
        let mut state = State::new(begun, true);
        state.request_begins(begun);
        let untaken = state.answer_begins(at(begun, 30));
        for seconds in 31..50 {
            state.request_begins(at(begun, seconds));
            let other = state.answer_begins(at(begun, seconds));
            state.answer_moves(other, at(begun, seconds));
            state.request_ends(Some(other), at(begun, seconds));
        }
        state.request_begins(at(begun, 49));
        expect_first(&state, None, 50, is_cut);
        state.answer_moves(untaken, at(begun, 49));
        expect_first(&state, None, 69, is_cut);
    }

    #[test]
    fn late_requests_on_a_closing_connection_are_cut_off() {
        let begun = Instant::now();
        let mut state = after_one_request(begun, 5);
        let ending = Some(at(begun, 40));
        state.request_begins(at(begun, 45));
        let verdict = state.verdict(&TIMES, ending, at(begun, 5_000));
        assert!(matches!(verdict, Verdict::Wait(_)), "{verdict:?}");
        state.request_begins(at(begun, 46));
        assert!(is_cut(state.verdict(&TIMES, ending, at(begun, 46))));
    }

    #[test]
    fn a_silent_closing_connection_is_cut_off() {
        let begun = Instant::now();
        let mut state = after_one_request(begun, 5);
        expect_first(&state, Some(at(begun, 40)), 42, is_cut);
        state.bytes_written = at(begun, 41);
        expect_first(&state, Some(at(begun, 40)), 43, is_cut);
        state.is_write_blocked = true;
        expect_first(&state, Some(at(begun, 40)), 140, is_cut);
        state.is_write_blocked = false;
        state.bytes_written = at(begun, 139);
        expect_first(&state, Some(at(begun, 40)), 140, is_cut);
    }

    #[test]
    fn the_next_decision_is_never_later_than_any_deadline() {
        let begun = Instant::now();
        let mut state = State::new(begun, true);
        state.request_begins(begun);
        let Verdict::Wait(wake) = state.verdict(&TIMES, None, begun) else {
            panic!("the connection is closed");
        };
        state.answer_begins(begun);
        assert!(matches!(
            state.verdict(&TIMES, None, wake),
            Verdict::Wait(_)
        ));
    }

    /// Returns the state after one request that ended at this time.
    fn after_one_request(begun: Instant, seconds: u64) -> State {
        let mut state = State::new(begun, true);
        state.request_begins(begun);
        let answer = state.answer_begins(at(begun, seconds));
        state.request_ends(Some(answer), at(begun, seconds));
        state
    }
}
