//! Events, and their formats in the trail.

use std::{
    io::Write,
    net::{IpAddr, SocketAddr},
};

use keywright_json::is_control_or_invisible;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

/// The format of the audit trail's lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AuditFormat {
    /// The Common Event Format.
    Cef,
    /// One JSON object per line.
    #[default]
    Json,
}

/// An access to one resource by a request or by the server itself, or a request that accessed no resource. In JSON, every
/// event has all fields, with null for unknown values.
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
    pub(super) request: Option<&'a str>,
    pub(super) status: u16,
    pub(super) source: Option<IpAddr>,
    pub(super) peer: Option<SocketAddr>,
    pub(super) destination: &'a str,
    pub(super) action: &'a str,
    pub(super) operation: Option<&'static str>,
    pub(super) resource_name: Option<&'a str>,
    pub(super) resource_id: Option<Uuid>,
    pub(super) version_id: Option<Uuid>,
    pub(super) request_details: Option<&'a Value>,
}

pub(super) fn push_line(lines: &mut Vec<u8>, event: &Event<'_>, format: AuditFormat) {
    match format {
        AuditFormat::Json => push_json(lines, event),
        AuditFormat::Cef => lines.extend_from_slice(cef_line(event).as_bytes()),
    }
    lines.push(b'\n');
}

/// Adds an event as JSON, without a line break.
fn push_json(lines: &mut Vec<u8>, event: &Event<'_>) {
    let start = lines.len();
    // Serializing the whole event would search each key for characters to escape.
    macro_rules! push_fields {
        ($($field:ident),+) => {
            // Does not compile if a field is missing.
            let Event { $($field),+ } = event;
            $(
                lines.extend_from_slice(concat!(",\"", stringify!($field), "\":").as_bytes());
                push_json_value(lines, $field);
            )+
        };
    }
    push_fields!(
        time,
        request_id,
        actor,
        subject,
        authentication,
        method,
        request,
        status,
        source,
        peer,
        destination,
        action,
        operation,
        resource_name,
        resource_id,
        version_id,
        request_details
    );
    if let Some(first_comma) = lines.get_mut(start) {
        *first_comma = b'{';
    }
    lines.push(b'}');
    escape_from(start, lines);
}

fn push_json_value(lines: &mut Vec<u8>, value: &impl Serialize) {
    // Strings, numbers and JSON values can always be serialized.
    let _ = serde_json::to_writer(lines, value);
}

/// Escapes characters that are allowed in JSON strings, but that other readers interpret as line breaks.
fn escape_from(start: usize, lines: &mut Vec<u8>) {
    let json = lines.get(start..).unwrap_or_default();
    // `serde_json` has escaped the other ASCII control characters.
    if json.is_ascii() && !json.contains(&DELETE) {
        return;
    }
    let json = lines.split_off(start);
    for character in String::from_utf8_lossy(&json).chars() {
        // Writing to memory does not fail.
        if is_control_or_invisible(character) {
            for unit in character.encode_utf16(&mut [0; 2]) {
                let _ = write!(lines, "\\u{unit:04x}");
            }
        } else {
            let _ = write!(lines, "{character}");
        }
    }
}

/// Formats an event in the Common Event Format, version 0, as one line without a line break ("Implementing `ArcSight` Common
/// Event Format", version 23).
///
/// Each of the seven fields of the header ends with `|`; in a field, `|` and `\` are escaped. The extension consists of pairs
/// of a key and a value; in a value, `\` and `=` are escaped, and line breaks are written as `\n` and `\r`. The format has no
/// other escapes: other control characters become spaces.
fn cef_line(event: &Event<'_>) -> String {
    let name = match (event.method, event.request) {
        (Some(method), Some(request)) => {
            let path = request.split('?').next().unwrap_or_default();
            format!("{method} {path}")
        }
        _ => event.action.to_owned(),
    };
    let mut line = String::from("CEF:0|Keywright|keywright|");
    for field in [env!("CARGO_PKG_VERSION"), name.as_str(), name.as_str()] {
        push_header(&mut line, field);
        line.push('|');
    }
    line.push_str(SEVERITY);
    line.push('|');

    let mut pairs = Pairs(line);
    pairs.push("rt", Some(event.time));
    pairs.push("suser", Some(event.subject));
    pairs.push("suid", Some(event.actor));
    pairs.push_labelled(
        "cs1",
        "userAuthenticationMechanism",
        Some(event.authentication),
    );
    pairs.push("request", event.request);
    pairs.push("requestMethod", event.method);
    pairs.push_labelled("cs3", "versionUuid", event.version_id);
    pairs.push_labelled("cs4", "httpStatusCode", Some(event.status));
    pairs.push("src", event.source);
    pairs.push("dst", Some(event.destination));
    pairs.push_labelled("cs2", "resourceName", event.resource_name);
    pairs.push_labelled("cs5", "resourceUuid", event.resource_id);
    pairs.push("deviceAction", Some(event.action));
    pairs.push_labelled("cs6", "requestDetails", event.request_details);
    pairs.push("externalId", event.request_id);
    pairs.push_labelled("flexString1", "operation", event.operation);
    pairs.push_labelled("flexString2", "peer", event.peer);
    pairs.0
}

/// The line with the pairs of its extension so far.
struct Pairs(String);

impl Pairs {
    fn push(&mut self, key: &str, value: Option<impl ToString>) {
        let Some(value) = value else { return };
        if !self.0.ends_with('|') {
            self.0.push(' ');
        }
        self.0.push_str(key);
        self.0.push('=');
        push_value(&mut self.0, &value.to_string());
    }

    /// Adds a pair with a generic key, and the pair with its label.
    fn push_labelled(&mut self, key: &str, label: &str, value: Option<impl ToString>) {
        if value.is_some() {
            self.push(&format!("{key}Label"), Some(label));
            self.push(key, value);
        }
    }
}

fn push_header(line: &mut String, field: &str) {
    for character in field.chars() {
        match character {
            '\\' | '|' => line.extend(['\\', character]),
            character if is_control_or_invisible(character) => line.push(' '),
            character => line.push(character),
        }
    }
}

fn push_value(line: &mut String, value: &str) {
    for character in value.chars() {
        match character {
            '\\' | '=' => line.extend(['\\', character]),
            '\n' => line.push_str("\\n"),
            '\r' => line.push_str("\\r"),
            character if is_control_or_invisible(character) => line.push(' '),
            character => line.push(character),
        }
    }
}

/// The only control character of ASCII that JSON strings may contain.
const DELETE: u8 = 0x7f;

/// The lowest severity, because events are not alarms.
const SEVERITY: &str = "0";

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use serde_json::json;

    use super::*;

    static DETAILS: LazyLock<Value> = LazyLock::new(|| json!({"a": "b=c"}));

    /// Returns an event with all fields, for the tests of the encoders.
    fn example() -> Event<'static> {
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
            request_details: Some(&DETAILS),
        }
    }

    fn json_line(event: &Event<'_>) -> String {
        let mut lines = Vec::new();
        push_json(&mut lines, event);
        String::from_utf8(lines).unwrap()
    }

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
    fn unknown_values_are_omitted_with_their_labels() {
        let event = Event {
            request_id: None,
            source: None,
            peer: None,
            operation: None,
            resource_name: None,
            resource_id: None,
            version_id: None,
            request_details: None,
            ..example()
        };
        let line = cef_line(&event);
        for key in [
            "cs2",
            "cs3",
            "cs5",
            "cs6",
            "src",
            "externalId",
            "flexString",
        ] {
            assert!(!line.contains(key), "{key}: {line}");
        }
    }
}
