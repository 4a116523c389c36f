//! How HTTP is spoken: the limits that are HTTP's own.

use std::{convert::Infallible, sync::Arc};

use hyper::{Request, body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::{conn::auto, graceful::GracefulConnection},
};
use keywright_api::{Connection, FRAME_BYTES_MAX, HeldBody, Router};
use tokio_rustls::server::TlsStream;
use tower::ServiceExt;

use super::{activity::Activity, ending::RequestExecutor, unread::lend, watched::Watched};
use crate::config::ServerSection;

/// HTTP/1.1 and HTTP/2, each with its limits.
#[derive(Clone)]
pub(super) struct Protocols {
    http1: Arc<auto::Builder<RequestExecutor>>,
    http2: Arc<auto::Builder<RequestExecutor>>,
}

impl Protocols {
    pub(super) fn new(config: &ServerSection, executor: RequestExecutor) -> Self {
        let mut builder = auto::Builder::new(executor);
        // How long a head may take is seen to by `judgement.rs`, for both versions alike.
        builder
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(None)
            .max_buf_size(config.header_bytes_max.count())
            .max_headers(config.header_fields_max.count());
        builder
            .http2()
            .timer(TokioTimer::new())
            .max_concurrent_streams(config.streams_per_connection_max.count_u32())
            .max_header_list_size(config.header_bytes_max.count_u32())
            .max_send_buf_size(FRAME_BYTES_MAX)
            .keep_alive_interval(config.ping_interval_seconds.seconds())
            .keep_alive_timeout(config.ping_seconds_max.seconds());
        Self {
            http1: Arc::new(builder.clone().http1_only()),
            http2: Arc::new(builder.http2_only()),
        }
    }

    /// Speaks the version that was agreed on in the handshake, and tells of each request that is under way.
    pub(super) fn serve(
        &self,
        stream: TlsStream<Watched>,
        connection: Connection,
        router: Router,
        activity: Arc<Activity>,
    ) -> impl GracefulConnection<Error = Box<dyn std::error::Error + Send + Sync>> + use<> {
        let is_http2 = stream.get_ref().1.alpn_protocol() == Some(HTTP2);
        activity.is_ready(!is_http2);
        let service = service_fn(move |mut request: Request<Incoming>| {
            let under_way = activity.request_begins();
            let router = router.clone();
            request.extensions_mut().insert(connection.clone());
            let (head, body) = request.into_parts();
            let (body, unread) = lend(body, &head.headers);
            let request = Request::from_parts(head, body);
            async move {
                let response = router.oneshot(request).await?;
                // HTTP/2 ends a stream that nobody reads, and the connection goes on.
                if !is_http2 {
                    unread.discard().await;
                }
                let under_way = under_way.answered();
                Ok::<_, Infallible>(response.map(|body| HeldBody::new(body, under_way)))
            }
        });
        let builder = if is_http2 { &self.http2 } else { &self.http1 };
        builder
            .serve_connection(TokioIo::new(stream), service)
            .into_owned()
    }
}

/// What HTTP/2 is called in a handshake.
const HTTP2: &[u8] = b"h2";
