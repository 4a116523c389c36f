//! Normalizes the path of a request before any rule is applied.
//!
//! Authentication, authorization, logs and routing all use the normal form, so no two rules can interpret a path differently.
//! Segments contain only unreserved characters (letters, digits and `-`, `.`, `_`, `~`: RFC 3986, section 2.3), because no path
//! of the API needs others. A path with any other character, plain or encoded, has no normal form and gets status 404. This
//! includes encoded slashes, backslashes, percent signs, semicolons and control characters, incomplete encodings, and bytes
//! beyond ASCII. So no path can be decoded twice.

use std::borrow::Cow;

use axum::http::{Request, Uri, uri::PathAndQuery};

/// Normalizes the path of a request; the rest of its target, including the query, is unchanged. A path without a normal form is
/// replaced with a target that matches no route.
pub(crate) fn with_normal_path<B>(mut request: Request<B>) -> Request<B> {
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

#[cfg(test)]
mod tests {
    use std::fmt::Write;

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
            let request = Request::builder().uri(target).body(()).unwrap();
            assert_eq!(with_normal_path(request).uri().to_string(), form);
        }
    }

    proptest! {
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
