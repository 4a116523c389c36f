//! Tracks the bytes and requests of a connection, from which `timeouts.rs` decides whether to close it.

use std::{
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

use super::timeouts::{ConnectionState, Decision, Timeouts};

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
