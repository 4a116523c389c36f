//! Parses requests.
//!
//! The path is normalized first, before any rule is applied. A handler's arguments then parse the query, and receive the body
//! and deserialize it (`strict_json.rs`).
//!
//! # Paths
//!
//! Authentication, authorization, logs and routing all use the normal form, so no two rules can interpret a path differently.
//! Segments contain only unreserved characters (letters, digits and `-`, `.`, `_`, `~`: RFC 3986, section 2.3), because no path
//! of the API needs others. A path with any other character, plain or encoded, has no normal form and gets status 404. This
//! includes encoded slashes, backslashes, percent signs, semicolons and control characters, incomplete encodings, and bytes
//! beyond ASCII. So no path can be decoded twice.

mod strict_json;

use std::{borrow::Cow, convert::Infallible, sync::Arc};

use axum::{
    body::HttpBody,
    extract::{FromRequestParts, Request},
    http::{HeaderMap, StatusCode, Uri, header::CONTENT_TYPE, request::Parts, uri::PathAndQuery},
};
use http_body_util::BodyExt;
use keywright_core::authorization::Caller;
use zeroize::Zeroizing;

use crate::{Limits, response::ApiError};

pub(crate) use strict_json::{
    BodyError, JsonText, Metadata, RequestObject, StrictJson, parse_document, truncated_name,
};

/// Normalizes the path of a request; the rest of its target, including the query, is unchanged. A path without a normal form is
/// replaced with a target that matches no route.
pub(crate) fn with_normal_path(mut request: Request) -> Request {
    if let Some(target) = normal_target(request.uri()) {
        let has_no_normal_path = target == unroutable_target();
        let original = std::mem::replace(request.uri_mut(), target);
        if has_no_normal_path {
            request.extensions_mut().insert(OriginalTarget(original));
        }
    }
    request
}

/// The original target, in the extensions of a request whose path has no normal form. Only for the audit trail: a decision
/// based on it would interpret the path differently.
#[derive(Clone, Debug)]
pub(crate) struct OriginalTarget(pub(crate) Uri);

/// Returns the target with a normalized path, or `None` if it is already normal.
fn normal_target(target: &Uri) -> Option<Uri> {
    match normal_path(target.path()) {
        Some(Cow::Borrowed(_)) => None,
        Some(Cow::Owned(path)) => Some(with_path(target, path).unwrap_or_else(unroutable_target)),
        None => Some(unroutable_target()),
    }
}

/// Returns the normal form of a path, if it has one.
///
/// In this order: percent-encodings are decoded once; empty segments are removed, so double and trailing slashes do not matter;
/// dot segments are resolved, never above the root (RFC 3986, section 5.2.4).
fn normal_path(path: &str) -> Option<Cow<'_, str>> {
    if path.len() > PATH_BYTES_MAX || !path.starts_with('/') {
        return None;
    }
    if is_normal(path) {
        return Some(Cow::Borrowed(path));
    }
    let decoded = decoded(path)?;
    let mut segments = Vec::new();
    for segment in decoded.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop();
            }
            segment => segments.push(segment),
        }
    }
    Some(Cow::Owned(format!("/{}", segments.join("/"))))
}

fn is_normal(path: &str) -> bool {
    let Some(segments) = path.strip_prefix('/') else {
        return false;
    };
    segments.is_empty()
        || segments.split('/').all(|segment| {
            !matches!(segment, "" | "." | "..") && segment.bytes().all(is_unreserved)
        })
}

/// Returns the decoded path, if it contains only slashes and unreserved characters. An encoded slash is rejected, because it
/// would be part of a segment.
fn decoded(path: &str) -> Option<String> {
    let mut decoded = String::with_capacity(path.len());
    let mut bytes = path.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'/' {
            decoded.push('/');
            continue;
        }
        let byte = if byte == b'%' {
            hex_digit(bytes.next()?)? << 4 | hex_digit(bytes.next()?)?
        } else {
            byte
        };
        if !is_unreserved(byte) {
            return None;
        }
        decoded.push(char::from(byte));
    }
    Some(decoded)
}

fn hex_digit(byte: u8) -> Option<u8> {
    let digit = char::from(byte).to_digit(16)?;
    u8::try_from(digit).ok()
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

fn with_path(target: &Uri, mut path: String) -> Option<Uri> {
    if let Some(query) = target.query() {
        path.push('?');
        path.push_str(query);
    }
    let mut parts = target.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(path).ok()?);
    Uri::from_parts(parts).ok()
}

/// Returns a target that matches no route: routes start with a slash.
fn unroutable_target() -> Uri {
    Uri::from_static("*")
}

/// Maximum length of a path, in bytes. The longest path of the API has about 250 bytes if each byte is percent-encoded.
const PATH_BYTES_MAX: usize = 2_048;

/// The parameters of a query, percent-decoded.
pub(crate) struct QueryParameters {
    pairs: Vec<(String, String)>,
}

impl<S: Sync> FromRequestParts<S> for QueryParameters {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::parse(
            parts.uri.query().unwrap_or_default().as_bytes(),
        ))
    }
}

/// A query is invalid. Messages are for the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum QueryError {
    #[error("only one of the parameters {0} and {1} may be given")]
    Exclusive(&'static str, &'static str),
    #[error("the parameter {parameter} must be {expected}")]
    Malformed {
        parameter: &'static str,
        /// The expected type, with its article.
        expected: &'static str,
    },
    /// The first parameter requires the second.
    #[error("the parameter {0} requires the parameter {1}")]
    Dependent(&'static str, &'static str),
    /// A required parameter is absent or empty.
    #[error("the parameter {0} is required")]
    Missing(&'static str),
    #[error("the parameter {0} must not be repeated")]
    Repeated(&'static str),
}

impl QueryParameters {
    /// Parses the form encoding of queries and form bodies.
    pub(crate) fn parse(encoded: &[u8]) -> Self {
        Self {
            pairs: form_urlencoded::parse(encoded).into_owned().collect(),
        }
    }

    /// Returns whether a parameter is present, even if empty.
    pub(crate) fn has(&self, parameter: &str) -> bool {
        self.pairs.iter().any(|(name, _)| name == parameter)
    }

    pub(crate) fn text(&self, parameter: &'static str) -> Result<Option<&str>, QueryError> {
        let mut found = self
            .pairs
            .iter()
            .filter(|(name, _)| name == parameter)
            .map(|(_, value)| value.as_str());
        let text = found.next();
        if found.next().is_some() {
            return Err(QueryError::Repeated(parameter));
        }
        Ok(text)
    }

    /// Returns the value of a required, non-empty parameter.
    pub(crate) fn required(&self, parameter: &'static str) -> Result<&str, QueryError> {
        self.non_empty_text(parameter)?
            .ok_or(QueryError::Missing(parameter))
    }

    /// Returns a boolean parameter: `true` or `false` in any case, `1` or `0`. An empty value counts as absent.
    pub(crate) fn boolean(&self, parameter: &'static str) -> Result<Option<bool>, QueryError> {
        let Some(text) = self.non_empty_text(parameter)? else {
            return Ok(None);
        };
        let is_any =
            |values: [&str; 2]| values.iter().any(|value| text.eq_ignore_ascii_case(value));
        if is_any(["true", "1"]) {
            Ok(Some(true))
        } else if is_any(["false", "0"]) {
            Ok(Some(false))
        } else {
            Err(QueryError::Malformed {
                parameter,
                expected: "true or false",
            })
        }
    }

    /// Returns an integer parameter. An empty value counts as absent.
    ///
    /// Its length is limited, because the audit trail omits the details of a request if they are too long. Leading zeros could
    /// otherwise hide other parameters.
    pub(crate) fn integer(&self, parameter: &'static str) -> Result<Option<i64>, QueryError> {
        let Some(text) = self.non_empty_text(parameter)? else {
            return Ok(None);
        };
        let is_short = text.len() <= INTEGER_CHARACTERS_MAX;
        let number = text.parse().ok().filter(|_| is_short);
        number.map(Some).ok_or(QueryError::Malformed {
            parameter,
            expected: "a whole number of at most 64 bits and 20 characters",
        })
    }

    fn non_empty_text(&self, parameter: &'static str) -> Result<Option<&str>, QueryError> {
        Ok(self.text(parameter)?.filter(|text| !text.is_empty()))
    }
}

/// Maximum length of an integer: the length of `i64::MIN`.
const INTEGER_CHARACTERS_MAX: usize = 20;

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

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use axum::body::Body;
    use proptest::prelude::*;

    use super::*;

    fn normal(path: &str) -> Option<String> {
        normal_path(path).map(Cow::into_owned)
    }

    #[test]
    fn a_path_may_have_up_to_the_maximum_length() {
        let long = format!("/{}", "a".repeat(PATH_BYTES_MAX - 1));
        assert_eq!(normal(&long), Some(long.clone()));
        assert_eq!(normal(&format!("{long}a")), None);
        assert_eq!(normal(&format!("{long}/")), None);
    }

    /// Writes a path in a random spelling: with parts that normalization removes, and with encoded characters.
    fn spelled(path: &str, choices: &[u8]) -> String {
        const SLASHES: [&str; 6] = ["/", "//", "/./", "/%2e/", "/x/../", "/x/y/%2E./.%2e//"];
        let mut choices = choices.iter().map(|choice| usize::from(*choice)).cycle();
        let mut chosen = |count: usize| choices.next().unwrap() % count;
        let mut spelled = ["", "/..", "/.", "/../%2e%2E"][chosen(4)].to_owned();
        for byte in path.bytes() {
            match (byte, chosen(3)) {
                (b'/', _) => write!(spelled, "{}", SLASHES[chosen(6)]),
                (_, 0) => write!(spelled, "%{byte:02x}"),
                (_, 1) => write!(spelled, "%{byte:02X}"),
                (byte, _) => write!(spelled, "{}", char::from(byte)),
            }
            .unwrap();
        }
        spelled + ["", "/", "//", "/.", "/x/..", "/%2e/"][chosen(6)]
    }

    #[test]
    fn the_rest_of_a_target_is_unchanged() {
        for (target, form) in [
            ("/info/?a=%2Fb/../c;d&&//%zz#", "/info?a=%2Fb/../c;d&&//%zz"),
            ("/info/?", "/info?"),
            ("https://host:1/%69nfo?a", "https://host:1/info?a"),
            ("https://host//", "https://host/"),
            ("host:1", "*"),
            ("https://host/%00?a", "*"),
        ] {
            let request = Request::builder().uri(target).body(Body::empty()).unwrap();
            assert_eq!(with_normal_path(request).uri().to_string(), form);
        }
    }

    proptest! {
        #[test]
        fn each_spelling_has_the_same_normal_form(
            path in "(/[a-z0-9_-]{1,8}){1,6}",
            choices in prop::collection::vec(any::<u8>(), 256),
        ) {
            prop_assert_eq!(normal(&spelled(&path, &choices)), Some(path));
        }

        #[test]
        fn normalization_is_idempotent(path in "/([a-z0-9._~/-]|%[0-9a-fA-F]{2}|[;%\\\\:]){0,40}") {
            if let Some(form) = normal(&path) {
                prop_assert!(is_normal(&form), "{form}");
                prop_assert_eq!(normal(&form), Some(form));
            }
        }

        #[test]
        fn the_encoding_of_bytes_makes_no_difference(
            bytes in prop::collection::vec((any::<u8>(), any::<bool>(), any::<bool>()), 0..40),
        ) {
            let encoded = |may_be_plain: bool| {
                let mut path = String::from("/");
                for &(byte, is_plain, is_upper) in &bytes {
                    match (is_unreserved(byte) && is_plain && may_be_plain, is_upper) {
                        (true, _) => write!(path, "{}", char::from(byte)),
                        (false, true) => write!(path, "%{byte:02X}"),
                        (false, false) => write!(path, "%{byte:02x}"),
                    }
                    .unwrap();
                }
                path
            };
            let all_are_unreserved = bytes.iter().all(|&(byte, ..)| is_unreserved(byte));
            let form = normal(&encoded(true));
            prop_assert_eq!(form.is_some(), all_are_unreserved);
            prop_assert_eq!(normal(&encoded(false)), form);
        }
    }
}
