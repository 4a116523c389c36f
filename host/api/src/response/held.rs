//! Bodies of responses that hold on to something.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use axum::body::{Body, Bytes};
use http_body::{Frame, SizeHint};

/// A body that keeps a value, such as a place among those that are served, until it has been handed over whole, or has been
/// given up.
#[derive(Debug)]
pub struct HeldBody<T> {
    body: Body,
    held: Option<T>,
}

impl<T> HeldBody<T> {
    /// A body that holds this.
    pub fn new(body: Body, held: T) -> Self {
        Self {
            body,
            held: Some(held),
        }
    }
}

impl<T: Unpin> http_body::Body for HeldBody<T> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if matches!(polled, Poll::Ready(None)) {
            self.held = None;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use http_body::Body as _;
    use http_body_util::BodyExt;

    use super::*;

    #[tokio::test]
    async fn what_is_held_is_let_go_when_all_is_handed_over_or_given_up() {
        let value = Arc::new(());
        let mut body = HeldBody::new(Body::from("text"), Arc::clone(&value));
        assert_eq!(body.size_hint().exact(), Some(4));
        assert!(!body.is_end_stream());
        assert_eq!(Arc::strong_count(&value), 2);
        assert!(body.frame().await.is_some());
        assert!(body.frame().await.is_none());
        assert_eq!(Arc::strong_count(&value), 1);
        let body = HeldBody::new(Body::from("text"), Arc::clone(&value));
        drop(body);
        assert_eq!(Arc::strong_count(&value), 1);
    }
}
