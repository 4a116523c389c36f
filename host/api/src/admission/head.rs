//! Checks the heads of requests against size limits and the rules of HTTP.

use axum::{
    extract::Request,
    http::{
        HeaderMap, HeaderValue, StatusCode, Version,
        header::{CONNECTION, HOST, TRANSFER_ENCODING},
        uri::Authority,
    },
    response::{IntoResponse, Response},
};

use super::RequestLimits;
use crate::{request::FormlessTarget, response::ApiFailure};

/// Returns the response to a request whose path and query together are too long, that has too many header fields, or whose
/// head leaves its end or its host ambiguous (RFC 9110, section 7.2; RFC 9112, sections 3.2 and 6; RFC 9113, section 8.3.1).
pub(crate) fn refused_head(request: &Request, limits: &RequestLimits) -> Option<Response> {
    let uri = request.uri();
    let uri_bytes = uri.path_and_query().map_or(0, |path| path.as_str().len());
    if uri_bytes > limits.uri_bytes_max {
        let max = limits.uri_bytes_max;
        let error = format!("the path and the query of a request may have at most {max} bytes");
        return Some(ApiFailure::new(StatusCode::URI_TOO_LONG, error).into_response());
    }
    if request.headers().len() > limits.header_fields_max {
        let max = limits.header_fields_max;
        let error = format!("a request may have at most {max} header fields");
        let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        return Some(ApiFailure::new(status, error).into_response());
    }
    if let Some(rule) = broken_rule(request) {
        let mut refused = ApiFailure::new(StatusCode::BAD_REQUEST, rule).into_response();
        if request.version() < Version::HTTP_2 {
            // The next bytes on the connection may be this request's body or another request.
            let close = HeaderValue::from_static("close");
            refused.headers_mut().insert(CONNECTION, close);
        }
        return Some(refused);
    }
    None
}

/// Returns the rule of HTTP that a head breaks, if any.
fn broken_rule(request: &Request) -> Option<&'static str> {
    let headers = request.headers();
    if let Some(encoding) = headers.get(TRANSFER_ENCODING) {
        let is_chunked = encoding.as_bytes().eq_ignore_ascii_case(CHUNKED);
        if !is_chunked || headers.get_all(TRANSFER_ENCODING).iter().count() > 1 {
            return Some("transfer-encoding must be chunked, and nothing else");
        }
    }
    broken_rule_of_host(request, headers)
}

fn broken_rule_of_host(request: &Request, headers: &HeaderMap) -> Option<&'static str> {
    let mut hosts = headers.get_all(HOST).iter();
    let host = hosts.next();
    if hosts.next().is_some() {
        return Some("a request must not have more than one host field");
    }
    let target = request.extensions().get::<FormlessTarget>();
    let target = target.map_or(request.uri(), |target| &target.0);
    let Some(host) = host else {
        let is_required = match request.version() {
            Version::HTTP_09 | Version::HTTP_10 => false,
            Version::HTTP_11 => true,
            _ => target.authority().is_none(),
        };
        return is_required.then_some("a request must have a host field");
    };
    let Some(host) = authority(host) else {
        return Some("the host field must be a host with an optional port");
    };
    let is_other = request.version() >= Version::HTTP_2
        && target
            .authority()
            .is_some_and(|authority| !authority.as_str().eq_ignore_ascii_case(host.as_str()));
    is_other.then_some("the host field and :authority must be the same")
}

/// Parses a host with an optional port.
fn authority(host: &HeaderValue) -> Option<Authority> {
    let authority = Authority::try_from(host.as_bytes()).ok()?;
    let has_user = authority.as_str().contains('@');
    (!has_user && !authority.host().is_empty()).then_some(authority)
}

const CHUNKED: &[u8] = b"chunked";
