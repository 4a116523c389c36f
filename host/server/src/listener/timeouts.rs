//! Tracks the bytes and requests of a connection, and decides from them whether the connection may stay open.

use std::{
    collections::BTreeMap,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use keywright_api::Held;
use parking_lot::Mutex;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::{Instant, Sleep, sleep},
};

/// Maximum times.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timeouts {
    /// The time to receive the head of a request.
    pub(super) head: Duration,
    /// The time without a request in progress.
    pub(super) idle: Duration,
    /// The time in which the client accepts no data of a response, even if it receives other data or sends requests.
    pub(super) write: Duration,
    pub(super) connection: Duration,
}

/// A decision about a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// Do nothing until this time, then decide again.
    Wait(Instant),
    /// Accept no new requests, and close after the requests in progress.
    Close(&'static str),
    /// Close immediately.
    Abort(&'static str),
}

struct ConnectionState {
    opened_at: Instant,
    is_http1: bool,
    has_requested: bool,
    /// The number of requests being processed.
    requests_running: usize,
    /// Incomplete responses by number, each with the time when the client last accepted its data.
    responses: BTreeMap<u64, Instant>,
    responses_begun: u64,
    last_request_at: Instant,
    /// The end of the last request or response, or the time when the connection became ready.
    idle_since: Instant,
    /// The arrival of the first byte of the next request. `None` for HTTP/2, whose connections also receive other bytes.
    head_since: Option<Instant>,
    last_write_at: Instant,
    is_write_blocked: bool,
}

impl ConnectionState {
    fn new(now: Instant, is_http1: bool) -> Self {
        Self {
            opened_at: now,
            is_http1,
            has_requested: false,
            requests_running: 0,
            responses: BTreeMap::new(),
            responses_begun: 0,
            last_request_at: now,
            idle_since: now,
            head_since: None,
            last_write_at: now,
            is_write_blocked: false,
        }
    }

    fn is_idle(&self) -> bool {
        self.requests_running == 0 && self.responses.is_empty()
    }

    fn bytes_read(&mut self, now: Instant) {
        if self.is_http1 && self.is_idle() {
            self.head_since.get_or_insert(now);
        }
    }

    fn bytes_written(&mut self, now: Instant) {
        self.last_write_at = now;
        self.is_write_blocked = false;
    }

    fn request_begins(&mut self, now: Instant) {
        self.has_requested = true;
        self.last_request_at = now;
        self.head_since = None;
        self.requests_running = self.requests_running.saturating_add(1);
    }

    fn response_starts(&mut self, now: Instant) -> u64 {
        self.requests_running = self.requests_running.saturating_sub(1);
        self.responses_begun = self.responses_begun.wrapping_add(1);
        self.responses.insert(self.responses_begun, now);
        self.responses_begun
    }

    fn response_moves(&mut self, response: u64, now: Instant) {
        if let Some(moved) = self.responses.get_mut(&response) {
            *moved = now;
        }
    }

    fn request_ends(&mut self, response: Option<u64>, now: Instant) {
        match response {
            Some(response) => {
                self.responses.remove(&response);
            }
            None => self.requests_running = self.requests_running.saturating_sub(1),
        }
        if self.is_idle() {
            self.idle_since = now;
        }
    }

    /// Decides about the connection. `closing_since` is when it started to close.
    fn decide(
        &self,
        timeouts: &Timeouts,
        closing_since: Option<Instant>,
        now: Instant,
    ) -> Decision {
        let deadline = self.deadline(timeouts, closing_since);
        let lifetime = match closing_since {
            Some(_) => None,
            None => Some((
                self.opened_at + timeouts.connection,
                Decision::Close("maximum connection time exceeded"),
            )),
        };
        // Later events can shorten the wait, but not below this time.
        let shortest = match closing_since {
            Some(_) => timeouts.write.min(QUIET_TIME),
            None => timeouts.head.min(timeouts.idle).min(timeouts.write),
        };
        let mut wake = now + shortest;
        for (instant, decision) in [deadline, lifetime].into_iter().flatten() {
            if instant <= now {
                return decision;
            }
            wake = wake.min(instant);
        }
        Decision::Wait(wake)
    }

    /// Returns the deadline for the client in the current state, and the decision once it has passed.
    fn deadline(
        &self,
        timeouts: &Timeouts,
        closing_since: Option<Instant>,
    ) -> Option<(Instant, Decision)> {
        if let Some(since) = closing_since
            && self.last_request_at > since + CLOSING_TIME
        {
            let decision =
                Decision::Abort("the client keeps sending requests on a closing connection");
            return Some((self.last_request_at, decision));
        }
        if let Some(moved) = self.responses.values().min() {
            let decision = Decision::Abort("the client does not accept a response");
            return Some((*moved + timeouts.write, decision));
        }
        if self.requests_running > 0 {
            return None;
        }
        if let Some(since) = closing_since {
            return Some((
                self.quiet_deadline(since, timeouts),
                Decision::Abort("the client does not close the connection"),
            ));
        }
        if !self.has_requested {
            let decision = Decision::Abort("no first request arrived in time");
            return Some((self.idle_since + timeouts.head, decision));
        }
        let idle = (
            self.idle_since + timeouts.idle,
            Decision::Close("maximum idle time exceeded"),
        );
        match self.head_since.map(|since| since + timeouts.head) {
            Some(head) if head < idle.0 => {
                Some((head, Decision::Abort("the head of a request took too long")))
            }
            _ => Some(idle),
        }
    }

    /// Returns the time at which a closing connection without requests is aborted. A transfer in progress may continue,
    /// but not forever.
    fn quiet_deadline(&self, closing_since: Instant, timeouts: &Timeouts) -> Instant {
        let since = closing_since.max(self.idle_since);
        let latest = since + timeouts.idle.max(QUIET_TIME);
        if self.is_write_blocked {
            return latest;
        }
        latest.min(since.max(self.last_write_at) + QUIET_TIME)
    }
}

/// Maximum silence on a closing connection: far longer than a client needs to react.
const QUIET_TIME: Duration = Duration::from_secs(2);

/// Maximum time in which a client may start requests on a closing connection: far longer than a client needs to react.
/// Over HTTP/2, a client may start requests until it acknowledges the shutdown.
const CLOSING_TIME: Duration = Duration::from_secs(5);

/// The activity of one connection.
pub(super) struct ConnectionTracker(Mutex<ConnectionState>);

/// A request in progress, until its response is written completely.
pub(super) struct TrackedRequest {
    tracker: Arc<ConnectionTracker>,
    /// The number of its response, once there is one.
    response: Option<u64>,
}

impl ConnectionTracker {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(ConnectionState::new(Instant::now(), true))))
    }

    /// Records the end of the handshake: the client may send requests.
    pub(super) fn handshake_done(&self, is_http1: bool) {
        *self.0.lock() = ConnectionState::new(Instant::now(), is_http1);
    }

    pub(super) fn request_begins(self: &Arc<Self>) -> TrackedRequest {
        self.0.lock().request_begins(Instant::now());
        TrackedRequest {
            tracker: Arc::clone(self),
            response: None,
        }
    }

    /// Decides about the connection. `closing_since` is when it started to close.
    pub(super) fn decide(&self, timeouts: &Timeouts, closing_since: Option<Instant>) -> Decision {
        self.0
            .lock()
            .decide(timeouts, closing_since, Instant::now())
    }
}

impl TrackedRequest {
    /// Records that the response is ready to be sent.
    pub(super) fn responded(mut self) -> Self {
        let response = self.tracker.0.lock().response_starts(Instant::now());
        self.response = Some(response);
        self
    }
}

impl Held for TrackedRequest {
    fn moved(&self) {
        if let Some(response) = self.response {
            self.tracker
                .0
                .lock()
                .response_moves(response, Instant::now());
        }
    }
}

impl Drop for TrackedRequest {
    fn drop(&mut self) {
        self.tracker
            .0
            .lock()
            .request_ends(self.response, Instant::now());
    }
}

/// A stream below TLS that records each transfer, and fails if the peer accepts no data for too long.
pub(super) struct TrackedStream {
    stream: TcpStream,
    tracker: Arc<ConnectionTracker>,
    write_time_max: Duration,
    /// Runs while writing is blocked.
    stall: Option<Pin<Box<Sleep>>>,
}

impl TrackedStream {
    pub(super) fn new(
        stream: TcpStream,
        tracker: Arc<ConnectionTracker>,
        write_time_max: Duration,
    ) -> Self {
        Self {
            stream,
            tracker,
            write_time_max,
            stall: None,
        }
    }

    pub(super) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    fn track_write(
        &mut self,
        context: &mut Context<'_>,
        polled: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if polled.is_ready() {
            self.stall = None;
            self.tracker.0.lock().bytes_written(Instant::now());
            return polled;
        }
        let stall = self.stall.get_or_insert_with(|| {
            self.tracker.0.lock().is_write_blocked = true;
            Box::pin(sleep(self.write_time_max))
        });
        ready!(stall.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "the client accepts no data",
        )))
    }
}

impl AsyncRead for TrackedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let filled = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        if buffer.filled().len() > filled {
            self.tracker.0.lock().bytes_read(Instant::now());
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for TrackedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.track_write(context, polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.track_write(context, polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUTS: Timeouts = Timeouts {
        head: Duration::from_secs(10),
        idle: Duration::from_secs(100),
        write: Duration::from_secs(20),
        connection: Duration::from_secs(1_000),
    };

    /// Returns a time, in seconds since the start.
    fn at(opened_at: Instant, seconds: u64) -> Instant {
        opened_at + Duration::from_secs(seconds)
    }

    #[track_caller]
    fn assert_first(
        state: &ConnectionState,
        closing_since: Option<Instant>,
        seconds: u64,
        is_expected: fn(Decision) -> bool,
    ) {
        let before = state.decide(&TIMEOUTS, closing_since, at(state.opened_at, seconds - 1));
        assert!(matches!(before, Decision::Wait(_)), "{before:?}");
        let then = state.decide(&TIMEOUTS, closing_since, at(state.opened_at, seconds));
        assert!(is_expected(then), "{then:?}");
    }

    fn is_abort(decision: Decision) -> bool {
        matches!(decision, Decision::Abort(_))
    }

    fn is_close(decision: Decision) -> bool {
        matches!(decision, Decision::Close(_))
    }

    #[test]
    fn the_first_head_must_arrive_within_the_head_time() {
        let state = ConnectionState::new(Instant::now(), true);
        assert_first(&state, None, 10, is_abort);
    }

    #[test]
    fn a_later_head_is_timed_from_its_first_byte() {
        let opened_at = Instant::now();
        let mut state = after_one_request(opened_at, 5);
        state.bytes_read(at(opened_at, 50));
        state.bytes_read(at(opened_at, 59));
        assert_first(&state, None, 60, is_abort);
    }

    #[test]
    fn bytes_without_a_request_do_not_keep_http2_open() {
        let opened_at = Instant::now();
        let mut state = after_one_request(opened_at, 5);
        state.is_http1 = false;
        for seconds in 5..105 {
            state.bytes_read(at(opened_at, seconds));
        }
        assert_first(&state, None, 105, is_close);
    }

    #[test]
    fn a_request_in_progress_is_not_aborted() {
        let opened_at = Instant::now();
        let mut state = ConnectionState::new(opened_at, true);
        state.request_begins(opened_at);
        assert_first(&state, None, 1_000, is_close);
        let closing = Some(at(opened_at, 1_000));
        let decision = state.decide(&TIMEOUTS, closing, at(opened_at, 5_000));
        assert!(matches!(decision, Decision::Wait(_)), "{decision:?}");
    }

    #[test]
    fn an_unaccepted_response_is_aborted_despite_other_requests() {
        let opened_at = Instant::now();
        let mut state = ConnectionState::new(opened_at, true);
        state.request_begins(opened_at);
        let unaccepted = state.response_starts(at(opened_at, 30));
        for seconds in 31..50 {
            state.request_begins(at(opened_at, seconds));
            let other = state.response_starts(at(opened_at, seconds));
            state.response_moves(other, at(opened_at, seconds));
            state.request_ends(Some(other), at(opened_at, seconds));
        }
        state.request_begins(at(opened_at, 49));
        assert_first(&state, None, 50, is_abort);
        state.response_moves(unaccepted, at(opened_at, 49));
        assert_first(&state, None, 69, is_abort);
    }

    #[test]
    fn late_requests_on_a_closing_connection_are_aborted() {
        let opened_at = Instant::now();
        let mut state = after_one_request(opened_at, 5);
        let closing = Some(at(opened_at, 40));
        state.request_begins(at(opened_at, 45));
        let decision = state.decide(&TIMEOUTS, closing, at(opened_at, 5_000));
        assert!(matches!(decision, Decision::Wait(_)), "{decision:?}");
        state.request_begins(at(opened_at, 46));
        assert!(is_abort(state.decide(
            &TIMEOUTS,
            closing,
            at(opened_at, 46)
        )));
    }

    #[test]
    fn a_silent_closing_connection_is_aborted() {
        let opened_at = Instant::now();
        let mut state = after_one_request(opened_at, 5);
        assert_first(&state, Some(at(opened_at, 40)), 42, is_abort);
        state.last_write_at = at(opened_at, 41);
        assert_first(&state, Some(at(opened_at, 40)), 43, is_abort);
        state.is_write_blocked = true;
        assert_first(&state, Some(at(opened_at, 40)), 140, is_abort);
        state.is_write_blocked = false;
        state.last_write_at = at(opened_at, 139);
        assert_first(&state, Some(at(opened_at, 40)), 140, is_abort);
    }

    #[test]
    fn the_next_decision_is_never_later_than_any_deadline() {
        let opened_at = Instant::now();
        let mut state = ConnectionState::new(opened_at, true);
        state.request_begins(opened_at);
        let Decision::Wait(wake) = state.decide(&TIMEOUTS, None, opened_at) else {
            panic!("the connection is closed");
        };
        state.response_starts(opened_at);
        assert!(matches!(
            state.decide(&TIMEOUTS, None, wake),
            Decision::Wait(_)
        ));
    }

    /// Returns the state after one request that ended at this time.
    fn after_one_request(opened_at: Instant, seconds: u64) -> ConnectionState {
        let mut state = ConnectionState::new(opened_at, true);
        state.request_begins(opened_at);
        let response = state.response_starts(at(opened_at, seconds));
        state.request_ends(Some(response), at(opened_at, seconds));
        state
    }
}
