//! Serves a connection over HTTP/1.1 or HTTP/2, with the limits of each, and closes it at its timeouts and at shutdown.
//!
//! # Unread bodies
//!
//! A request can be refused by its head alone while its body is still being sent. A response that is sent at that point can be
//! lost:
//!
//! - Over HTTP/1.1, the connection of an incomplete request can't carry another request, so hyper closes it after the
//!   response (RFC 9112, sections 9.3 and 9.6). A client that is still sending is reset and may lose the response.
//! - Over HTTP/2, hyper resets the stream after the response. RFC 9113, section 8.1, forbids clients to discard the response
//!   because of that reset, but curl 7.88 does.
//!
//! So the server first receives the body to its end, unless it is too large or too slow. The received bytes are discarded.

use std::{
    convert::Infallible,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use http_body_util::BodyExt;
use hyper::{
    Request,
    body::{Body, Bytes, Frame, Incoming, SizeHint},
    header::EXPECT,
    rt::Executor,
    server::conn::{http1, http2},
    service::service_fn,
};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulConnection,
};
use keywright_api::{Connection, FRAME_BYTES_MAX, HeldBody, Limits, Pipeline};
use parking_lot::Mutex;
use tokio::{
    sync::watch,
    time::{Instant, sleep_until, timeout},
};
use tokio_rustls::server::TlsStream;

use super::timeouts::{ConnectionTracker, Decision, Timeouts, TrackedStream};
use crate::config::ServerSection;

/// HTTP/1.1 and HTTP/2, each with its limits.
#[derive(Clone)]
pub(super) struct Protocols {
    http1: Arc<http1::Builder>,
    http2: Arc<http2::Builder<RequestExecutor>>,
    body_limits: Limits,
}

impl Protocols {
    pub(super) fn new(config: &ServerSection, executor: RequestExecutor) -> Self {
        let header_bytes_max = config.header_bytes_max.count();
        let mut http1 = http1::Builder::new();
        // `timeouts.rs` limits the time for a head, for both versions. A head may arrive together with the data after it,
        // so the size of the buffer alone does not limit the size of the head.
        http1
            .timer(TokioTimer::new())
            .header_read_timeout(None)
            .max_buf_size(header_bytes_max)
            .max_header_size(header_bytes_max)
            // hyper's own response has no body, so `admission.rs` refuses requests with slightly too many fields.
            .max_headers(2 * config.header_fields_max.count());
        let mut http2 = http2::Builder::new(executor);
        http2
            .timer(TokioTimer::new())
            .max_concurrent_streams(config.streams_per_connection_max.count_u32())
            .max_header_list_size(config.header_bytes_max.count_u32())
            .max_send_buf_size(FRAME_BYTES_MAX)
            .keep_alive_interval(config.ping_interval_seconds.seconds())
            .keep_alive_timeout(config.ping_seconds_max.seconds());
        Self {
            http1: Arc::new(http1),
            http2: Arc::new(http2),
            body_limits: config.body_limits(),
        }
    }

    /// Serves a connection until it ends, in the version negotiated in the handshake, and records each request in progress.
    pub(super) async fn serve(
        &self,
        stream: TlsStream<TrackedStream>,
        connection: Connection,
        pipeline: Arc<Pipeline>,
        tracker: Arc<ConnectionTracker>,
        timeouts: Timeouts,
        stage: watch::Receiver<Stage>,
    ) -> Ended<hyper::Error> {
        let is_http2 = stream.get_ref().1.alpn_protocol() == Some(HTTP2);
        tracker.handshake_done(!is_http2);
        let requests = Arc::clone(&tracker);
        let body_limits = self.body_limits;
        let connection = Arc::new(connection);
        let service = service_fn(move |request: Request<Incoming>| {
            let in_progress = requests.request_begins();
            let (pipeline, connection) = (Arc::clone(&pipeline), Arc::clone(&connection));
            let (head, body) = request.into_parts();
            // Reading the body would send `100 Continue` to a client that waits for it.
            let may_drain = !body.is_end_stream() && !head.headers.contains_key(EXPECT);
            let body = SharedBody(Arc::new(Mutex::new(body)));
            let unread = may_drain.then(|| body.clone());
            let request = Request::from_parts(head, body);
            // Boxed, so that the memory is released with the response: a client may leave many responses unread.
            Box::pin(async move {
                let response = pipeline.respond(Some(&connection), request).await;
                if let Some(unread) = unread {
                    unread.drain(body_limits).await;
                }
                let in_progress = in_progress.responded();
                Ok::<_, Infallible>(response.map(|body| HeldBody::new(body, in_progress)))
            })
        });
        let stream = TokioIo::new(stream);
        if is_http2 {
            let served = self.http2.serve_connection(stream, service);
            serve_until_closed(served, &tracker, timeouts, stage).await
        } else {
            let served = self.http1.serve_connection(stream, service);
            serve_until_closed(served, &tracker, timeouts, stage).await
        }
    }
}

/// The ALPN name of HTTP/2.
const HTTP2: &[u8] = b"h2";

/// A request's body. The listener keeps a second handle, to receive the rest that the API leaves unread.
#[derive(Clone)]
struct SharedBody(Arc<Mutex<Incoming>>);

impl SharedBody {
    /// Receives the rest of the body and discards it. Returns early if the rest is larger than a body may be or takes longer
    /// than [`DRAIN_TIME_MAX`] to arrive.
    async fn drain(mut self, limits: Limits) {
        let bytes_max = u64::try_from(limits.body_bytes_max).unwrap_or(u64::MAX);
        let drained = async {
            let mut bytes = 0;
            while self.size_hint().lower().saturating_add(bytes) <= bytes_max {
                let Some(Ok(frame)) = self.frame().await else {
                    return;
                };
                let received = frame.data_ref().map_or(0, Bytes::len);
                bytes = bytes.saturating_add(u64::try_from(received).unwrap_or(u64::MAX));
            }
        };
        let time_max = limits.body_deadline.min(DRAIN_TIME_MAX);
        // After that time the response is sent, and the connection is closed or the stream reset.
        let _ = timeout(time_max, drained).await;
    }
}

impl Body for SharedBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        Pin::new(&mut *self.0.lock()).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.0.lock().is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.lock().size_hint()
    }
}

/// Maximum time that a response waits for the rest of a body. Usually shorter than `body_seconds_max`, because
/// unauthenticated clients can make a request wait that long.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(5);

/// The stage of the listener, sent to all connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Connections are served.
    Open,
    /// Connections are served, but slots are scarce: idle and silent connections are closed.
    Scarce,
    /// The process is shutting down: requests in progress are completed, and no new requests are accepted.
    ShuttingDown,
    /// The shutdown time is over: requests in progress are aborted.
    Aborting,
}

/// How a connection ended.
#[derive(Debug)]
pub(super) enum Ended<E> {
    /// The connection ended: the client closed it, it completed after a graceful shutdown, or it failed.
    Completed(Result<(), E>),
    /// The server closed it for this reason.
    Aborted(&'static str),
}

/// Serves a connection until it ends, and enforces its time limits.
async fn serve_until_closed<C: GracefulConnection>(
    connection: C,
    tracker: &ConnectionTracker,
    timeouts: Timeouts,
    mut stage: watch::Receiver<Stage>,
) -> Ended<C::Error> {
    let mut connection = pin!(connection);
    let mut closing_since = None;
    loop {
        let current = *stage.borrow_and_update();
        if current == Stage::Aborting {
            return Ended::Aborted("the server is shutting down");
        }
        if current == Stage::ShuttingDown && closing_since.is_none() {
            connection.as_mut().graceful_shutdown();
            closing_since = Some(Instant::now());
        }
        let timeouts = match current {
            Stage::Scarce => Timeouts {
                idle: timeouts.idle.min(SHORT_IDLE_TIME),
                head: timeouts.head.min(SHORT_HEAD_TIME),
                ..timeouts
            },
            Stage::Open | Stage::ShuttingDown | Stage::Aborting => timeouts,
        };
        let wake = match tracker.decide(&timeouts, closing_since) {
            Decision::Abort(reason) => return Ended::Aborted(reason),
            Decision::Close(reason) => {
                tracing::debug!(reason, "closing the connection");
                connection.as_mut().graceful_shutdown();
                closing_since = Some(Instant::now());
                continue;
            }
            Decision::Wait(wake) => wake,
        };
        tokio::select! {
            ended = connection.as_mut() => return Ended::Completed(ended),
            // The sender outlives all connections; an error would be harmless.
            Ok(()) = stage.changed() => {}
            () = sleep_until(wake) => {}
        }
    }
}

/// Returns when the process is shutting down.
pub(super) async fn shutdown_started(stage: &mut watch::Receiver<Stage>) {
    // An error means that the listener is gone.
    let _ = stage
        .wait_for(|stage| matches!(stage, Stage::ShuttingDown | Stage::Aborting))
        .await;
}

/// Runs HTTP/2 request tasks until they complete or are aborted. A running task keeps a receiver of the stage, so that
/// the listener can wait for the end of the last task.
#[derive(Clone)]
pub(super) struct RequestExecutor(pub(super) watch::Sender<Stage>);

impl<F> Executor<F> for RequestExecutor
where
    F: Future<Output: Send> + Send + 'static,
{
    fn execute(&self, future: F) {
        let mut stage = self.0.subscribe();
        tokio::spawn(async move {
            tokio::select! {
                biased;
                _ = stage.wait_for(|stage| *stage == Stage::Aborting) => {}
                _ = future => {}
            }
        });
    }
}

/// Maximum idle time of a connection while slots are scarce.
const SHORT_IDLE_TIME: Duration = Duration::from_secs(1);

/// Maximum time for a handshake, and for the head of a request, while slots are scarce.
pub(super) const SHORT_HEAD_TIME: Duration = Duration::from_secs(2);
