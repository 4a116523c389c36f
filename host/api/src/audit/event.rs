//! Events, and their format in the trail.

use std::{
    borrow::Cow,
    iter,
    net::{IpAddr, SocketAddr},
};

use axum::http::Method;
use chrono::{DateTime, Utc};
use keywright_core::{
    authorization::{Account, Authentication, Caller, Touched},
    permission::{Actor, Operation, Operations},
};
use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{cef, json};

/// The format of the trail's lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditFormat {
    /// One JSON object per line.
    Json,
    /// One event in the Common Event Format per line.
    Cef,
}

/// An access to one resource by a request or by the server itself, or a request that accessed none. In JSON, every event has
/// all fields; missing ones are null.
#[derive(Serialize)]
pub(super) struct Event<'a> {
    /// When the request arrived, in milliseconds since 1970.
    pub(super) time: i64,
    pub(super) request_id: Option<Uuid>,
    pub(super) actor: &'a str,
    /// The caller's name in the token or certificate.
    pub(super) subject: &'a str,
    /// `uaa` for a token, `mutual_tls` for a certificate, `server` for the server itself.
    pub(super) authentication: &'static str,
    /// `None` without a request.
    pub(super) method: Option<&'a str>,
    /// The path and query.
    pub(super) request: Option<&'a str>,
    pub(super) status: u16,
    pub(super) source: Option<IpAddr>,
    pub(super) peer: Option<SocketAddr>,
    pub(super) destination: &'a str,
    pub(super) action: &'a str,
    /// The operation on this resource.
    pub(super) operation: Option<&'static str>,
    pub(super) resource_name: Option<&'a str>,
    pub(super) resource_id: Option<Uuid>,
    pub(super) version_id: Option<Uuid>,
    #[serde(rename = "request_details")]
    pub(super) details: Option<&'a Value>,
}

/// The properties of a request before it is handled.
pub(super) struct Observed {
    pub(super) time: DateTime<Utc>,
    pub(super) request_id: Option<Uuid>,
    pub(super) method: Method,
    /// The path and query, truncated to their limit.
    pub(super) request: String,
    pub(super) source: Option<IpAddr>,
    pub(super) peer: Option<SocketAddr>,
    /// The action of the route.
    pub(super) action: &'static str,
}

/// Returns the lines for a completed request, and their number: one per accessed resource, or one for the request itself.
pub(super) fn lines(
    observed: &Observed,
    caller: &Caller,
    status: u16,
    destination: &str,
    format: AuditFormat,
) -> (Vec<u8>, u64) {
    let Account { action, details } = caller.trail().account();
    let (authentication, subject) = match caller.authentication() {
        Authentication::ClientCertificate { subject } => ("mutual_tls", subject),
        Authentication::Token { subject } => ("uaa", subject),
    };
    let details = details.map(bounded);
    let subject = cut(subject, TEXT_BYTES_MAX);
    let method = cut(observed.method.as_str(), METHOD_BYTES_MAX);
    let mut lines = Vec::with_capacity(LINE_BYTES);
    let mut push = |touched: Option<&Touched>, address_bytes_max: usize| {
        let name = touched.map(|touched| cut(&touched.name, TEXT_BYTES_MAX));
        let request = cut(&observed.request, address_bytes_max);
        let of_resource = details_of(touched);
        let event = Event {
            time: observed.time.timestamp_millis(),
            request_id: observed.request_id,
            actor: caller.actor().as_str(),
            subject: &subject,
            authentication,
            method: Some(&method),
            request: Some(&request),
            status,
            source: observed.source,
            peer: observed.peer,
            destination,
            action: action.unwrap_or(observed.action),
            operation: touched.map(|touched| touched.operation.as_str()),
            resource_name: name.as_deref(),
            resource_id: touched.and_then(|touched| touched.resource_id),
            version_id: touched.and_then(|touched| touched.version_id),
            details: of_resource.as_ref().or(details.as_ref()),
        };
        push_line(&mut lines, &event, format);
    };
    let touched = caller.trail().touched();
    if touched.is_empty() {
        push(None, ADDRESS_BYTES_MAX);
    }
    let address_bytes_max = iter::once(ADDRESS_BYTES_MAX).chain(iter::repeat(REPEATED_BYTES_MAX));
    for (resource, address_bytes_max) in touched.iter().zip(address_bytes_max) {
        push(Some(resource), address_bytes_max);
    }
    let count = touched.len().max(1);
    (lines, u64::try_from(count).unwrap_or(u64::MAX))
}

/// Adds an event as one line.
pub(super) fn push_line(lines: &mut Vec<u8>, event: &Event<'_>, format: AuditFormat) {
    match format {
        AuditFormat::Json => json::push_event(lines, event),
        AuditFormat::Cef => lines.extend_from_slice(cef::line(event).as_bytes()),
    }
    lines.push(b'\n');
}

/// Returns the details of one resource: the actor and operations of a permission, or that the response contained the value of
/// a version. Each resource has its own event, so details are never truncated: an actor has at most 255 characters, and there
/// are five operations.
fn details_of(touched: Option<&Touched>) -> Option<Value> {
    let touched = touched?;
    if touched.is_value_disclosed {
        return Some(json!({"existing_value_disclosed": true}));
    }
    let granted_to = touched.granted.as_ref()?;
    Some(granted(&granted_to.actor, granted_to.operations))
}

/// Returns the details of a permission; operations are omitted if unknown.
pub(crate) fn granted(actor: &Actor, operations: Option<Operations>) -> Value {
    let actor = actor.as_str();
    let Some(operations) = operations else {
        return json!({"actor": actor});
    };
    let operations: Vec<_> = operations.iter().map(Operation::as_str).collect();
    json!({"actor": actor, "operations": operations})
}

/// Truncates a text to a limit in bytes, and marks it as truncated.
pub(super) fn cut(text: &str, bytes_max: usize) -> Cow<'_, str> {
    if text.len() <= bytes_max {
        return Cow::Borrowed(text);
    }
    let mut end = bytes_max;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    Cow::Owned(format!("{}…", text.get(..end).unwrap_or_default()))
}

/// Returns whether a character could end a line, control a terminal, change the direction of text, or be invisible. All such
/// characters are in Unicode's first plane.
pub(super) fn is_control(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{61c}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{2069}'
                | '\u{feff}'
        )
}

fn bounded(details: Value) -> Value {
    if details.to_string().len() <= DETAILS_BYTES_MAX {
        details
    } else {
        json!({"omitted": format!("longer than {DETAILS_BYTES_MAX} bytes")})
    }
}

/// Maximum length of a path, and of a path with its query, in bytes: a name of 255 characters fits in any encoding.
pub(super) const REQUEST_BYTES_MAX: usize = 2_048;

/// Maximum length of a truncated path or request, with its mark.
const ADDRESS_BYTES_MAX: usize = REQUEST_BYTES_MAX + "…".len();

/// Maximum length of a path, and of a path with its query, in all events of a request except the first, in bytes: a request may
/// access thousands of resources.
const REPEATED_BYTES_MAX: usize = 256;

/// Maximum length of a method, in bytes.
const METHOD_BYTES_MAX: usize = 32;

/// Maximum length of a name or subject, in bytes.
const TEXT_BYTES_MAX: usize = 1_024;

/// Maximum size of details, in bytes of JSON.
const DETAILS_BYTES_MAX: usize = 4_096;

/// The usual maximum size of a line, in bytes.
const LINE_BYTES: usize = 768;

/// An event without a request, for the tests of the encoders.
#[cfg(test)]
pub(super) fn example_without_a_request() -> Event<'static> {
    Event {
        authentication: "server",
        method: None,
        request: None,
        source: None,
        peer: None,
        action: "DELETE_BY_RETENTION",
        ..example()
    }
}

#[cfg(test)]
static DETAILS: std::sync::LazyLock<Value> = std::sync::LazyLock::new(|| json!({"a": "b=c"}));

/// An event with all fields, for the tests of the encoders.
#[cfg(test)]
pub(super) fn example() -> Event<'static> {
    Event {
        time: 1_800_000_000_123,
        request_id: Some(Uuid::from_u128(1)),
        actor: "uaa-client:app",
        subject: "app",
        authentication: "uaa",
        method: Some("GET"),
        request: Some("/api/v1/data?name=/a"),
        status: 200,
        source: Some(IpAddr::from([10, 0, 0, 1])),
        peer: Some(SocketAddr::from(([127, 0, 0, 1], 4_321))),
        destination: "vault-1",
        action: "GET",
        operation: Some("read"),
        resource_name: Some("/a"),
        resource_id: Some(Uuid::from_u128(2)),
        version_id: Some(Uuid::from_u128(3)),
        details: Some(&DETAILS),
    }
}

#[cfg(test)]
mod tests {
    use keywright_core::permission::Actor;

    use super::*;

    fn observed() -> Observed {
        Observed {
            time: DateTime::UNIX_EPOCH,
            request_id: None,
            method: Method::GET,
            request: "/api/v1/data".to_owned(),
            source: None,
            peer: None,
            action: "GET",
        }
    }

    #[test]
    fn texts_beyond_the_limit_are_cut_between_characters() {
        for (text, bytes_max, expected) in [
            ("abcd", 4, "abcd"),
            ("abcde", 4, "abcd…"),
            ("aää", 5, "aää"),
            ("aäää", 4, "aä…"),
        ] {
            assert_eq!(cut(text, bytes_max), expected);
        }
    }

    #[test]
    fn control_and_invisible_characters_are_recognized() {
        let acting =
            "\0\u{7f}\u{85}\u{61c}\u{200b}\u{200f}\u{2028}\u{202e}\u{2060}\u{2069}\u{feff}";
        assert!(acting.chars().all(is_control));
        let read = "a ä\u{200a}\u{2010}\u{2027}\u{202f}\u{205f}\u{206a}\u{fefe}\u{10348}";
        assert!(!read.chars().any(is_control));
    }

    #[test]
    fn details_beyond_their_limit_are_omitted() {
        let text = |length: usize| json!("x".repeat(length));
        let fitting = text(DETAILS_BYTES_MAX - 2);
        assert_eq!(bounded(fitting.clone()), fitting);
        assert!(bounded(text(DETAILS_BYTES_MAX - 1)).is_object());
    }

    #[test]
    fn a_request_without_resources_has_one_line_with_details() {
        let subject = "s".repeat(TEXT_BYTES_MAX + 1);
        let caller = Caller::new(
            Actor::client("app").unwrap(),
            Authentication::Token { subject },
        );
        caller.trail().tell_action("FIND");
        caller.trail().tell_details(json!({"path": "/a"}));
        let (text, count) = lines(&observed(), &caller, 200, "here", AuditFormat::Json);
        let event: Value = serde_json::from_slice(&text).unwrap();
        assert_eq!(count, 1);
        assert_eq!(event["action"], "FIND");
        assert_eq!(event["request_details"], json!({"path": "/a"}));
        assert_eq!(event["resource_name"], Value::Null);
        assert_eq!(
            event["subject"].as_str().unwrap().len(),
            TEXT_BYTES_MAX + "…".len()
        );
    }
}
