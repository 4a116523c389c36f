//! Receives and discards the part of a request's body that its handler did not read.
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
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use http_body_util::BodyExt;
use hyper::{
    HeaderMap,
    body::{Body, Bytes, Frame, Incoming, SizeHint},
    header::EXPECT,
};
use keywright_api::Limits;
use tokio::{sync::oneshot, time::timeout};

/// A request's body, which is returned to the listener when it is dropped before its end.
pub(super) struct ReturnedBody {
    body: Option<Incoming>,
    owner: Option<oneshot::Sender<Incoming>>,
}

/// The body that a dropped [`ReturnedBody`] returned.
pub(super) struct UnreadBody(Option<oneshot::Receiver<Incoming>>);

/// Wraps a body so that it is returned if it is dropped before its end. A body is never returned if it is empty, or if
/// its client waits for `100 Continue` before sending it.
pub(super) fn returnable(body: Incoming, headers: &HeaderMap) -> (ReturnedBody, UnreadBody) {
    let may_return = !body.is_end_stream() && !headers.contains_key(EXPECT);
    let (owner, unread) = may_return.then(oneshot::channel).unzip();
    let body = Some(body);
    (ReturnedBody { body, owner }, UnreadBody(unread))
}

impl UnreadBody {
    /// Receives the rest of the body and discards it. Returns early if the rest is larger than a body may be or takes longer
    /// than [`DRAIN_TIME_MAX`] to arrive.
    pub(super) async fn drain(mut self, limits: Limits) {
        let unread = self.0.as_mut().map(oneshot::Receiver::try_recv);
        let Some(Ok(mut body)) = unread else {
            return;
        };
        let bytes_max = u64::try_from(limits.body_bytes_max).unwrap_or(u64::MAX);
        let drained = async {
            let mut bytes = 0;
            while body.size_hint().lower().saturating_add(bytes) <= bytes_max {
                let Some(Ok(frame)) = body.frame().await else {
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

impl Body for ReturnedBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match &mut self.body {
            Some(body) => Pin::new(body).poll_frame(context),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body
            .as_ref()
            .map_or_else(|| SizeHint::with_exact(0), Body::size_hint)
    }
}

impl Drop for ReturnedBody {
    fn drop(&mut self) {
        let (Some(body), Some(owner)) = (self.body.take(), self.owner.take()) else {
            return;
        };
        if !body.is_end_stream() {
            // The receiver is gone if the connection has ended.
            let _ = owner.send(body);
        }
    }
}

/// Maximum time that a response waits for the rest of a body. Usually shorter than `body_seconds_max`, because
/// unauthenticated clients can make a request wait that long.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(5);
