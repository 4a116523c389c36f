//! JSON bodies.

use axum::{
    body::Body,
    http::{HeaderValue, StatusCode, header::CONTENT_TYPE},
    response::Response,
};
use chrono::{DateTime, SecondsFormat, Utc};
use serde::Serialize;

use crate::response::ApiFailure;

/// A response with a body that is JSON text already.
pub(crate) fn json(status: StatusCode, body: String) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(JSON_MEDIA_TYPE));
    response
}

/// A response with status 200 and a body made of `body`.
///
/// # Errors
/// 500 when it has no JSON form.
pub(crate) fn rendered(body: &impl Serialize) -> Result<Response, ApiFailure> {
    rendered_with(StatusCode::OK, body)
}

/// A response with a status and a body made of `body`.
///
/// # Errors
/// 500 when it has no JSON form.
pub(crate) fn rendered_with(
    status: StatusCode,
    body: &impl Serialize,
) -> Result<Response, ApiFailure> {
    let text = serde_json::to_string(body).map_err(ApiFailure::unrenderable)?;
    Ok(json(status, text))
}

/// A time as clients get it: whole seconds, what is below them cut off.
pub(crate) fn timestamp(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// The media type of JSON bodies.
pub(crate) const JSON_MEDIA_TYPE: &str = "application/json;charset=UTF-8";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_cut_to_whole_seconds() {
        for (time, text) in [
            ("2026-01-02T03:04:05.999Z", "2026-01-02T03:04:05Z"),
            ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"),
        ] {
            assert_eq!(timestamp(time.parse().unwrap()), text);
        }
    }
}
