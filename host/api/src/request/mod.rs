//! Parses requests.
//!
//! The path is normalized first (`path.rs`). A handler's arguments then parse the query (`query.rs`), and receive the body (this
//! file) and deserialize it (`strict_json.rs`).

mod path;
mod query;
mod strict_json;

use std::sync::Arc;

use axum::{
    body::HttpBody,
    extract::Request,
    http::{HeaderMap, StatusCode, header::CONTENT_TYPE},
};
use http_body_util::BodyExt;
use keywright_core::authorization::Caller;
use zeroize::Zeroizing;

use crate::{Limits, response::ApiError};

pub(crate) use path::{OriginalTarget, with_normal_path};
pub(crate) use query::{QueryError, QueryParameters};
pub(crate) use strict_json::{
    BodyError, JsonText, Metadata, RequestObject, StrictJson, parse_document, truncated_name,
};

/// Receives a JSON body. Parameters of the media type such as `charset` are ignored, because JSON is UTF-8.
///
/// # Errors
/// 400 for another media type or an incomplete body, 408 or 413 if a limit is exceeded.
pub(crate) async fn read_json_body(
    request: Request,
    limits: &Limits,
) -> Result<Zeroizing<Vec<u8>>, ApiError> {
    check_is_json(request.headers())?;
    read_body(request, limits).await
}

/// Receives a body of any media type. Its size counts towards the caller's response memory until the response is
/// complete.
///
/// # Errors
/// 400 for an incomplete body, 408 or 413 if a limit is exceeded, 429 or 503 if there is not enough memory.
pub(crate) async fn read_body(
    request: Request,
    limits: &Limits,
) -> Result<Zeroizing<Vec<u8>>, ApiError> {
    tokio::time::timeout(
        limits.body_deadline,
        receive(request, limits.body_bytes_max),
    )
    .await
    .unwrap_or_else(|_| {
        Err(ApiError::new(
            StatusCode::REQUEST_TIMEOUT,
            "the request body took too long to arrive",
        ))
    })
}

pub(crate) fn has_media_type(headers: &HeaderMap, media_type: &str) -> bool {
    headers
        .get(CONTENT_TYPE)
        .and_then(|content_type| content_type.to_str().ok())
        .and_then(|content_type| content_type.split(';').next())
        .is_some_and(|essence| essence.trim().eq_ignore_ascii_case(media_type))
}

fn check_is_json(headers: &HeaderMap) -> Result<(), ApiError> {
    if has_media_type(headers, "application/json") {
        return Ok(());
    }
    Err(ApiError::new(
        StatusCode::BAD_REQUEST,
        "the content type of the request is not supported; it must be application/json",
    ))
}

async fn receive(request: Request, bytes_max: usize) -> Result<Zeroizing<Vec<u8>>, ApiError> {
    let (parts, mut body) = request.into_parts();
    let caller = parts.extensions.get::<Arc<Caller>>();
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    let capacity = announced.min(bytes_max).min(RECEIVED_BYTES_FIRST);
    let mut received = Zeroizing::new(Vec::with_capacity(capacity));
    let mut bytes = 0_usize;
    while announced.max(bytes) <= bytes_max.saturating_add(DISCARDED_BYTES_MAX) {
        let Some(frame) = body.frame().await else {
            break;
        };
        let frame = frame.map_err(|_| {
            ApiError::new(
                StatusCode::BAD_REQUEST,
                "could not receive the request body",
            )
        })?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        bytes = bytes.saturating_add(data.len());
        if bytes <= bytes_max {
            let reserved = caller.map_or(Ok(()), |caller| caller.reserve(data.len()));
            reserved.map_err(ApiError::body_without_memory)?;
            append(&mut received, &data);
        }
    }
    if announced.max(bytes) > bytes_max {
        return Err(ApiError::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("the request body must have at most {bytes_max} bytes"),
        ));
    }
    Ok(received)
}

/// Appends data. Vectors leave copies of their contents in freed memory when they grow, so a larger vector replaces a full one.
fn append(received: &mut Zeroizing<Vec<u8>>, data: &[u8]) {
    let bytes = received.len().saturating_add(data.len());
    if bytes > received.capacity() {
        let capacity = bytes.max(received.capacity().saturating_mul(2));
        let mut larger = Zeroizing::new(Vec::with_capacity(capacity));
        larger.extend_from_slice(received);
        *received = larger;
    }
    received.extend_from_slice(data);
}

/// The maximum memory that is allocated before data arrives, in bytes: a client may announce more than it sends.
const RECEIVED_BYTES_FIRST: usize = 64 * 1024;

/// The number of bytes past the limit that are received and discarded: if the connection is closed while the client is still
/// sending, the client may not receive the response.
const DISCARDED_BYTES_MAX: usize = 16 * 1024 * 1024;
