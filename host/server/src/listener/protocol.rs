//! Serves HTTP/1.1 and HTTP/2, with the limits of each.

use std::{convert::Infallible, sync::Arc};

use hyper::{
    Request,
    body::Incoming,
    server::conn::{http1, http2},
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use keywright_api::{Connection, FRAME_BYTES_MAX, HeldBody, Limits, Pipeline};
use tokio::sync::watch;
use tokio_rustls::server::TlsStream;

use super::{
    connection_tracker::{ConnectionTracker, TrackedStream},
    drain::returnable,
    shutdown::{Ended, RequestExecutor, Stage, serve_until_closed},
    timeouts::Timeouts,
};
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
            .max_headers(config.header_fields_max.count());
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
            let (body, unread) = returnable(body, &head.headers);
            let request = Request::from_parts(head, body);
            async move {
                let response = pipeline.respond(Some(&connection), request).await;
                unread.drain(body_limits).await;
                let in_progress = in_progress.responded();
                Ok::<_, Infallible>(response.map(|body| HeldBody::new(body, in_progress)))
            }
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
