//! One event, and its form in the trail.

use std::{
    iter,
    net::{IpAddr, SocketAddr},
};

use chrono::{DateTime, Utc};
use keywright_core::{
    authorization::{Account, Authentication, Caller, Touched},
    permission::{Actor, Operation, Operations},
};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{cef, json::json_line};

/// The form of the trail's lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditFormat {
    /// One JSON object a line.
    Json,
    /// One event in the Common Event Format a line.
    Cef,
}

/// One resource that a request touched, or a request that touched none; or what the server does to one by itself.
pub(super) struct Event<'a> {
    /// When the request arrived.
    pub(super) time: DateTime<Utc>,
    pub(super) request_id: Option<Uuid>,
    pub(super) actor: &'a str,
    /// The part of the token or of the certificate that names the caller.
    pub(super) subject: &'a str,
    /// `uaa` for a token, `mutual_tls` for a certificate, `server` for the server itself.
    pub(super) authentication: &'static str,
    /// None where there is no request.
    pub(super) method: Option<&'a str>,
    pub(super) path: Option<&'a str>,
    /// Path and query.
    pub(super) request: Option<&'a str>,
    pub(super) status: u16,
    pub(super) source: Option<IpAddr>,
    pub(super) peer: Option<SocketAddr>,
    pub(super) destination: &'a str,
    pub(super) action: &'a str,
    /// What was asked for of this resource.
    pub(super) operation: Option<Operation>,
    pub(super) resource_name: Option<&'a str>,
    pub(super) resource_id: Option<Uuid>,
    pub(super) version_id: Option<Uuid>,
    pub(super) details: Option<Value>,
}

/// What is known of a request before it is handled, in texts that are cut to their limits.
pub(super) struct Observed {
    pub(super) time: DateTime<Utc>,
    pub(super) request_id: Option<Uuid>,
    pub(super) method: String,
    pub(super) path: String,
    pub(super) request: String,
    pub(super) source: Option<IpAddr>,
    pub(super) peer: Option<SocketAddr>,
    /// The action of the route.
    pub(super) action: &'static str,
}

/// The lines about a request that ended with a status, and how many they are: one for each resource that it touched, or one
/// for the request itself.
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
    let event = |touched: Option<&Touched>, address_bytes_max: usize| {
        let name = touched.map(|touched| cut(&touched.name, TEXT_BYTES_MAX));
        let path = cut(&observed.path, address_bytes_max);
        let request = cut(&observed.request, address_bytes_max);
        let event = Event {
            time: observed.time,
            request_id: observed.request_id,
            actor: caller.actor().as_str(),
            subject: &subject,
            authentication,
            method: Some(&observed.method),
            path: Some(&path),
            request: Some(&request),
            status,
            source: observed.source,
            peer: observed.peer,
            destination,
            action: action.unwrap_or(observed.action),
            operation: touched.map(|touched| touched.operation),
            resource_name: name.as_deref(),
            resource_id: touched.and_then(|touched| touched.resource_id),
            version_id: touched.and_then(|touched| touched.version_id),
            details: details_of(touched).or_else(|| details.clone()),
        };
        line_of(&event, format)
    };
    let touched = caller.trail().touched();
    let mut text = String::new();
    if touched.is_empty() {
        text.push_str(&event(None, ADDRESS_BYTES_MAX));
        text.push('\n');
    }
    let address_bytes_max = iter::once(ADDRESS_BYTES_MAX).chain(iter::repeat(REPEATED_BYTES_MAX));
    for (resource, address_bytes_max) in touched.iter().zip(address_bytes_max) {
        text.push_str(&event(Some(resource), address_bytes_max));
        text.push('\n');
    }
    let count = touched.len().max(1);
    (text.into_bytes(), u64::try_from(count).unwrap_or(u64::MAX))
}

/// An event as one line, without its break.
pub(super) fn line_of(event: &Event<'_>, format: AuditFormat) -> String {
    match format {
        AuditFormat::Json => json_line(event),
        AuditFormat::Cef => cef::line(event),
    }
}

/// The details that belong to one resource: of a permission, its actor and operations; of a version, that its value was in the
/// response. Each resource has an event of its own, so they are always complete: an actor has at most 255 characters, and there
/// are five operations.
fn details_of(touched: Option<&Touched>) -> Option<Value> {
    let touched = touched?;
    if touched.is_value_disclosed {
        return Some(json!({"existing_value_disclosed": true}));
    }
    let told = touched.granted.as_ref()?;
    Some(granted(&told.actor, told.operations))
}

/// Whom a permission lets do what, as details tell it; what it lets do is left out where that is not known.
pub(crate) fn granted(actor: &Actor, operations: Option<Operations>) -> Value {
    let actor = actor.as_str();
    let Some(operations) = operations else {
        return json!({"actor": actor});
    };
    let operations: Vec<_> = operations.iter().map(Operation::as_str).collect();
    json!({"actor": actor, "operations": operations})
}

/// A text that is cut, with a mark, where it is longer than a limit in bytes.
pub(super) fn cut(text: &str, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    let mut end = bytes_max;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…", text.get(..end).unwrap_or_default())
}

/// Whether a character could end a line, or do something else to whoever reads it: control a terminal, turn the direction
/// of the text around it, or stand there unseen. All of them are in Unicode's first plane.
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

/// The longest path, and the longest path with its query, in bytes: a name of 255 characters fits in whatever encoding.
pub(super) const REQUEST_BYTES_MAX: usize = 2_048;

/// A path and a request are cut to their limit already, and the mark of that is longer than nothing.
const ADDRESS_BYTES_MAX: usize = REQUEST_BYTES_MAX + "…".len();

/// The longest path, and the longest path with its query, in all events of a request but the first, in bytes: a request may
/// touch thousands of resources.
const REPEATED_BYTES_MAX: usize = 256;

/// The longest name and the longest subject, in bytes.
const TEXT_BYTES_MAX: usize = 1_024;

/// The longest details, in bytes of JSON.
const DETAILS_BYTES_MAX: usize = 4_096;

/// An event without a request, for the tests of the encoders.
#[cfg(test)]
pub(super) fn example_without_a_request() -> Event<'static> {
    Event {
        authentication: "server",
        method: None,
        path: None,
        request: None,
        source: None,
        peer: None,
        action: "DELETE_BY_RETENTION",
        ..example()
    }
}

/// An event with all members, for the tests of the encoders.
#[cfg(test)]
pub(super) fn example() -> Event<'static> {
    Event {
        time: DateTime::from_timestamp_millis(1_800_000_000_123).unwrap(),
        request_id: Some(Uuid::from_u128(1)),
        actor: "uaa-client:app",
        subject: "app",
        authentication: "uaa",
        method: Some("GET"),
        path: Some("/api/v1/data"),
        request: Some("/api/v1/data?name=/a"),
        status: 200,
        source: Some(IpAddr::from([10, 0, 0, 1])),
        peer: Some(SocketAddr::from(([127, 0, 0, 1], 4_321))),
        destination: "vault-1",
        action: "GET",
        operation: Some(Operation::Read),
        resource_name: Some("/a"),
        resource_id: Some(Uuid::from_u128(2)),
        version_id: Some(Uuid::from_u128(3)),
        details: Some(json!({"a": "b=c"})),
    }
}

#[cfg(test)]
mod tests {
    use keywright_core::permission::Actor;

    use super::*;

    fn observed() -> Observed {
        Observed {
            time: example().time,
            request_id: None,
            method: "GET".to_owned(),
            path: "/api/v1/data".to_owned(),
            request: "/api/v1/data".to_owned(),
            source: None,
            peer: None,
            action: "GET",
        }
    }

    #[test]
    fn a_text_is_cut_between_characters_and_one_at_the_limit_is_whole() {
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
    fn characters_that_act_unseen_are_told_from_those_that_are_read() {
        let acting =
            "\0\u{7f}\u{85}\u{61c}\u{200b}\u{200f}\u{2028}\u{202e}\u{2060}\u{2069}\u{feff}";
        assert!(acting.chars().all(is_control));
        let read = "a ä\u{200a}\u{2010}\u{2027}\u{202f}\u{205f}\u{206a}\u{fefe}\u{10348}";
        assert!(!read.chars().any(is_control));
    }

    #[test]
    fn details_beyond_their_limit_are_left_out() {
        let text = |length: usize| json!("x".repeat(length));
        let fitting = text(DETAILS_BYTES_MAX - 2);
        assert_eq!(bounded(fitting.clone()), fitting);
        assert!(bounded(text(DETAILS_BYTES_MAX - 1)).is_object());
    }

    #[test]
    fn what_touches_nothing_has_one_line_with_what_was_told_of_it() {
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
