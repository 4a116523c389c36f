//! What becomes of a request's body that the answer did not wait for.
//!
//! Of a request that is refused by its head alone the body may still be on its way. An HTTP/1.1 connection whose request
//! was not received whole can't carry another one: hyper closes it behind the answer. A client that goes on sending then
//! meets a reset, and may lose the answer with it; one that keeps the connection sends its next request into nothing
//! (RFC 9112, sections 9.3 and 9.6). So what is small is received first, and let go.

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
use tokio::{sync::oneshot, time::timeout};

/// A request's body, which is given back when it was not read to its end.
pub(super) struct LentBody {
    body: Option<Incoming>,
    owner: Option<oneshot::Sender<Incoming>>,
}

/// What comes back of a [`LentBody`].
pub(super) struct Unread(oneshot::Receiver<Incoming>);

/// Lends a body. Nothing of it comes back where a client first waits to be told that it may send it: it will not.
pub(super) fn lend(body: Incoming, headers: &HeaderMap) -> (LentBody, Unread) {
    let (owner, unread) = oneshot::channel();
    let is_announced = headers.contains_key(EXPECT);
    let lent = LentBody {
        body: Some(body),
        owner: (!is_announced).then_some(owner),
    };
    (lent, Unread(unread))
}

impl Unread {
    /// Receives what was not read, unless that is too much or takes too long.
    pub(super) async fn discard(mut self) {
        let Ok(mut body) = self.0.try_recv() else {
            return;
        };
        let discarded = async {
            let mut bytes = 0;
            while body.size_hint().lower().saturating_add(bytes) <= DISCARDED_BYTES_MAX {
                let Some(Ok(frame)) = body.frame().await else {
                    return;
                };
                let received = frame.data_ref().map_or(0, Bytes::len);
                bytes = bytes.saturating_add(u64::try_from(received).unwrap_or(u64::MAX));
            }
        };
        // Where it takes longer the connection is closed behind the answer.
        let _ = timeout(DISCARDING_TIME_MAX, discarded).await;
    }
}

impl Body for LentBody {
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

impl Drop for LentBody {
    fn drop(&mut self) {
        let (Some(body), Some(owner)) = (self.body.take(), self.owner.take()) else {
            return;
        };
        if !body.is_end_stream() {
            // Whoever lent it may be gone with the connection.
            let _ = owner.send(body);
        }
    }
}

/// The most that is received of a body that nobody read, in bytes.
const DISCARDED_BYTES_MAX: u64 = 64 * 1024;

/// How long an answer waits for a body that nobody read.
const DISCARDING_TIME_MAX: Duration = Duration::from_secs(5);
