//! Response bodies that hold a value.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use axum::body::{Body, Bytes};
use http_body::{Body as _, Frame, SizeHint};

/// A value held by a [`HeldBody`].
pub trait Held: Unpin {
    /// Called when part of the body was sent, and more follows.
    fn moved(&self) {}
}

/// A body that holds a value, such as a permit, until the connection has accepted all of it, or until it is dropped.
///
/// It is sent in frames of at most [`FRAME_BYTES_MAX`], with the last byte in a frame of its own: an HTTP/2 connection accepts a
/// whole frame as soon as the client's window allows one byte. So it accepts the last frame only when the window allowed all
/// bytes before it.
#[derive(Debug)]
pub struct HeldBody<T> {
    body: Body,
    /// Data from the body that was not sent yet.
    rest: Bytes,
    held: Option<T>,
}

impl<T> HeldBody<T> {
    /// Creates a body that holds a value.
    pub fn new(body: Body, held: T) -> Self {
        Self {
            body,
            rest: Bytes::new(),
            held: Some(held),
        }
    }

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

/// Maximum size of a frame, in bytes: the default maximum of HTTP/2 (RFC 9113, section 6.5.2).
pub const FRAME_BYTES_MAX: usize = 16 * 1024;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use http_body_util::BodyExt;

    use super::*;

    impl Held for Arc<()> {}

    #[tokio::test]
    async fn the_held_value_is_dropped_when_the_body_is_sent_or_dropped() {
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
    async fn a_body_is_sent_in_frames_with_a_last_frame_of_one_byte() {
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
            // A nested held body is not split further.
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
