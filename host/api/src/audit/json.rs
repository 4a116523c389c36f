//! Events as JSON.

use std::{
    fmt::Write,
    net::{IpAddr, SocketAddr},
};

use keywright_core::permission::Operation;
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use super::event::{Event, is_control};

/// Every event has all fields; missing ones are null.
#[derive(Serialize)]
struct EventBody<'a> {
    /// Milliseconds since 1970.
    time: i64,
    request_id: Option<Uuid>,
    actor: &'a str,
    subject: &'a str,
    authentication: &'a str,
    method: Option<&'a str>,
    request: Option<&'a str>,
    status: u16,
    source: Option<IpAddr>,
    peer: Option<SocketAddr>,
    destination: &'a str,
    action: &'a str,
    operation: Option<&'a str>,
    resource_name: Option<&'a str>,
    resource_id: Option<Uuid>,
    version_id: Option<Uuid>,
    request_details: Option<&'a Value>,
}

/// Formats an event as one line, without a line break.
pub(super) fn json_line(event: &Event<'_>) -> String {
    let body = EventBody {
        time: event.time.timestamp_millis(),
        request_id: event.request_id,
        actor: event.actor,
        subject: event.subject,
        authentication: event.authentication,
        method: event.method,
        request: event.request,
        status: event.status,
        source: event.source,
        peer: event.peer,
        destination: event.destination,
        action: event.action,
        operation: event.operation.map(Operation::as_str),
        resource_name: event.resource_name,
        resource_id: event.resource_id,
        version_id: event.version_id,
        request_details: event.details.as_ref(),
    };
    // Strings, numbers and JSON values can always be serialized.
    escaped(serde_json::to_string(&body).unwrap_or_default())
}

/// Escapes characters that are allowed in JSON strings, but that other readers interpret as line breaks.
fn escaped(json: String) -> String {
    if !json.contains(is_control) {
        return json;
    }
    let mut text = String::with_capacity(json.len());
    for character in json.chars() {
        if is_control(character) {
            // Writing to a string does not fail.
            let _ = write!(text, "\\u{:04x}", u32::from(character));
        } else {
            text.push(character);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::event::{example, example_without_a_request};

    #[test]
    fn an_event_has_all_fields_in_order() {
        assert_eq!(
            json_line(&example()),
            concat!(
                r#"{"time":1800000000123,"request_id":"00000000-0000-0000-0000-000000000001","#,
                r#""actor":"uaa-client:app","subject":"app","authentication":"uaa","method":"GET","#,
                r#""request":"/api/v1/data?name=/a","status":200,"source":"10.0.0.1","#,
                r#""peer":"127.0.0.1:4321","destination":"vault-1","action":"GET","operation":"read","#,
                r#""resource_name":"/a","resource_id":"00000000-0000-0000-0000-000000000002","#,
                r#""version_id":"00000000-0000-0000-0000-000000000003","request_details":{"a":"b=c"}}"#,
            )
        );
    }

    #[test]
    fn without_a_request_its_fields_are_null() {
        let event: Value = serde_json::from_str(&json_line(&example_without_a_request())).unwrap();
        for member in ["method", "request", "source", "peer"] {
            assert_eq!(event.get(member), Some(&Value::Null), "{member}");
        }
        assert_eq!(event["action"], "DELETE_BY_RETENTION");
    }

    #[test]
    fn no_text_ends_a_line() {
        let actor = "a\nb\r\u{0}\u{7f}\u{85}\u{9b}\u{2028}\u{2029}\"\\ä";
        let event = Event { actor, ..example() };
        let line = json_line(&event);
        assert!(!line.contains(is_control), "{line:?}");
        let parsed: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(parsed["actor"], actor);
    }
}
