//! JSON bodies.

use std::sync::Arc;

use axum::{
    body::Body,
    http::{HeaderValue, StatusCode, header::CONTENT_TYPE},
    response::Response,
};
use chrono::{DateTime, SecondsFormat, Utc};
use keywright_core::{authorization::Caller, credential::CredentialVersion};
use serde::{Serialize, Serializer};

use crate::response::ApiFailure;

/// Creates a response from JSON text.
pub(crate) fn json(status: StatusCode, body: String) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(JSON_MEDIA_TYPE));
    response
}

/// Creates a response with status 200.
///
/// # Errors
/// 500 if the body can't be serialized.
pub(crate) fn rendered(body: &impl Serialize) -> Result<Response, ApiFailure> {
    rendered_with(StatusCode::OK, body)
}

/// Creates a response with a status.
///
/// # Errors
/// 500 if the body can't be serialized.
pub(crate) fn rendered_with(
    status: StatusCode,
    body: &impl Serialize,
) -> Result<Response, ApiFailure> {
    let mut text = serde_json::to_string(body).map_err(ApiFailure::unrenderable)?;
    if text.len() > LARGE_RESPONSE_BYTES {
        // Frees excess capacity, because the response may stay in memory for a slow client.
        text.shrink_to_fit();
    }
    Ok(json(status, text))
}

/// Renders a response with versions, as [`rendered_list`] does.
///
/// # Errors
/// As [`rendered_list`].
pub(crate) async fn rendered_versions(
    caller: Arc<Caller>,
    versions: Vec<CredentialVersion>,
    render: impl FnOnce(&[CredentialVersion]) -> Result<Response, ApiFailure> + Send + 'static,
) -> Result<Response, ApiFailure> {
    let values = versions.iter().map(|version| version.value.expose().len());
    let bytes = values.fold(list_bytes(versions.len()), usize::saturating_add);
    rendered_list(caller, versions, bytes, render).await
}

/// Renders a response with a list that takes about this many bytes. A large one is rendered on a blocking thread. The thread
/// holds the caller, and with it the memory reserved for the response, because it continues if the client disconnects.
///
/// # Errors
/// The error of `render`, or 500 if it panics.
pub(crate) async fn rendered_list<T: Send + 'static>(
    caller: Arc<Caller>,
    items: Vec<T>,
    bytes: usize,
    render: impl FnOnce(&[T]) -> Result<Response, ApiFailure> + Send + 'static,
) -> Result<Response, ApiFailure> {
    if bytes <= LARGE_RESPONSE_BYTES {
        return render(&items);
    }
    let rendering = tokio::task::spawn_blocking(move || {
        let rendered = render(&items);
        drop((items, caller));
        rendered
    });
    rendering
        .await
        .unwrap_or_else(|_| Err(ApiFailure::unrendered()))
}

/// Returns the approximate size of a list with this many entries, in bytes.
pub(crate) fn list_bytes(entries: usize) -> usize {
    entries.saturating_mul(ENTRY_BYTES)
}

/// A list that is rendered item by item, so that the bodies of all items are never in memory together.
pub(crate) struct LazyList<'a, B>(Box<dyn Fn(usize) -> Option<B> + 'a>);

impl<'a, B> LazyList<'a, B> {
    /// Creates a list of the bodies of these items.
    pub(crate) fn new<T>(items: &'a [T], body: impl Fn(&'a T) -> B + 'a) -> Self {
        Self(Box::new(move |place| items.get(place).map(&body)))
    }
}

impl<B: Serialize> Serialize for LazyList<'_, B> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq((0..).map_while(|place| (self.0)(place)))
    }
}

/// Formats a time for a response, truncated to seconds.
pub(crate) fn timestamp(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// The size above which a response is large, in bytes.
const LARGE_RESPONSE_BYTES: usize = 256 * 1024;

/// The approximate size of an entry of a list without its value, in bytes.
const ENTRY_BYTES: usize = 256;

/// The media type of JSON bodies.
pub(crate) const JSON_MEDIA_TYPE: &str = "application/json;charset=UTF-8";

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use keywright_core::{
        authorization::Authentication,
        permission::Actor,
        response_memory::{ResponseLimits, ResponseMemory},
    };

    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn memory_stays_reserved_while_a_cancelled_response_is_rendered() {
        const BYTES: usize = LARGE_RESPONSE_BYTES + 1;
        let memory = Arc::new(ResponseMemory::new(ResponseLimits {
            response_bytes_max: BYTES,
            responses_bytes_max: 2 * BYTES,
            responses_bytes_per_actor_max: 2 * BYTES,
        }));
        let actor = Actor::parse("uaa-client:app").unwrap();
        let subject = "app".to_owned();
        let caller = Caller::new(actor, Authentication::Token { subject })
            .with_response(Arc::new(memory.begin("uaa-client:app")));
        caller.reserve(BYTES).unwrap();
        let (end, may_end) = channel::<()>();
        let response = rendered_list(Arc::new(caller), vec![()], BYTES, move |_| {
            let _ = may_end.recv();
            Err(ApiFailure::unrendered())
        });
        assert!(response.now_or_never().is_none());
        assert_eq!(memory.used_bytes(), 2 * BYTES);
        drop(end);
    }

    #[test]
    fn times_are_truncated_to_seconds() {
        for (time, text) in [
            ("2026-01-02T03:04:05.999Z", "2026-01-02T03:04:05Z"),
            ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"),
        ] {
            assert_eq!(timestamp(time.parse().unwrap()), text);
        }
    }
}
