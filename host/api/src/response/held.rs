//! Bodies of responses that hold on to something.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use axum::body::{Body, Bytes};
use http_body::{Body as _, Frame, SizeHint};

/// What a [`HeldBody`] holds.
pub trait Held: Unpin {
    /// Some of the body was taken, and there is more of it.
    fn moved(&self) {}
}

/// A body that keeps a value, such as a place among those that are served, until the connection has room for all of it, or
/// until it has been given up.
///
/// It is handed over in frames of at most [`FRAME_BYTES_MAX`], and its last byte in one of its own: a connection over HTTP/2
/// takes a whole frame, however large, as soon as its client lets one byte be sent. So it can't have the last one before
/// the client lets all bytes be sent that stand before it.
#[derive(Debug)]
pub struct HeldBody<T> {
    body: Body,
    /// What has been taken from the body and is not handed over yet.
    rest: Bytes,
    held: Option<T>,
}

impl<T> HeldBody<T> {
    /// A body that holds this.
    pub fn new(body: Body, held: T) -> Self {
        Self {
            body,
            rest: Bytes::new(),
            held: Some(held),
        }
    }

    /// The next of what has been taken from the body.
    fn next_frame(&mut self) -> Frame<Bytes> {
        let is_last = self.rest.len() <= FRAME_BYTES_MAX && self.body.is_end_stream();
        let bytes = match self.rest.len() {
            0 | 1 => self.rest.len(),
            length if is_last => length.saturating_sub(1),
            length => length.min(FRAME_BYTES_MAX),
        };
        Frame::data(self.rest.split_to(bytes))
    }
}

impl<T: Held> http_body::Body for HeldBody<T> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if let Some(held) = &self.held {
            held.moved();
        }
        if !self.rest.is_empty() {
            return Poll::Ready(Some(Ok(self.next_frame())));
        }
        let Some(frame) = ready!(Pin::new(&mut self.body).poll_frame(context)) else {
            self.held = None;
            return Poll::Ready(None);
        };
        Poll::Ready(Some(frame.map(|frame| match frame.into_data() {
            Ok(data) => {
                self.rest = data;
                self.next_frame()
            }
            Err(other) => other,
        })))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let rest = u64::try_from(self.rest.len()).unwrap_or(u64::MAX);
        let body = self.body.size_hint();
        let mut hint = SizeHint::new();
        hint.set_lower(body.lower().saturating_add(rest));
        if let Some(upper) = body.upper() {
            hint.set_upper(upper.saturating_add(rest));
        }
        hint
    }
}

/// The most that is handed over at once, in bytes: the largest frame that an HTTP/2 client takes unless it says otherwise
/// (RFC 9113, section 6.5.2).
pub const FRAME_BYTES_MAX: usize = 16 * 1024;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use http_body_util::BodyExt;

    use super::*;

    impl Held for Arc<()> {}

    #[tokio::test]
    async fn what_is_held_is_let_go_when_all_is_handed_over_or_given_up() {
        let value = Arc::new(());
        let mut body = HeldBody::new(Body::from("text"), Arc::clone(&value));
        assert_eq!(body.size_hint().exact(), Some(4));
        for rest in [1, 0] {
            assert!(!body.is_end_stream());
            assert!(body.frame().await.is_some());
            assert_eq!(body.size_hint().exact(), Some(rest));
            assert_eq!(Arc::strong_count(&value), 2);
        }
        assert!(body.is_end_stream());
        assert!(body.frame().await.is_none());
        assert_eq!(Arc::strong_count(&value), 1);
        let body = HeldBody::new(Body::from("text"), Arc::clone(&value));
        drop(body);
        assert_eq!(Arc::strong_count(&value), 1);
    }

    #[tokio::test]
    async fn a_body_is_handed_over_in_frames_of_which_the_last_is_one_byte() {
        const MAX: usize = FRAME_BYTES_MAX;
        for (length, frames) in [
            (0, &[][..]),
            (1, &[1]),
            (2, &[1, 1]),
            (MAX, &[MAX - 1, 1]),
            (MAX + 1, &[MAX, 1]),
            (2 * MAX + 3, &[MAX, MAX, 2, 1]),
        ] {
            let bytes: Vec<u8> = (0..=u8::MAX).cycle().take(length).collect();
            // One that is held twice is cut no further.
            let body = HeldBody::new(Body::from(bytes.clone()), Arc::new(()));
            let mut body = HeldBody::new(Body::new(body), Arc::new(()));
            let (mut lengths, mut received) = (Vec::new(), Vec::new());
            while let Some(frame) = body.frame().await {
                let data = frame.unwrap().into_data().unwrap();
                lengths.push(data.len());
                received.extend(data);
            }
            lengths.retain(|length| *length > 0);
            assert_eq!(lengths, frames);
            assert!(received == bytes);
        }
    }
}
