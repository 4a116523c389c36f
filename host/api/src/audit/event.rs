//! The contents of audit events, and their formats in the trail.

use std::{
    borrow::Cow,
    io::Write,
    iter,
    net::{IpAddr, SocketAddr},
};

use axum::http::{Method, Uri};
use chrono::{DateTime, Utc};
use keywright_core::{
    authorization::{AccessedResource, Account, Authentication, Caller},
    permission::{Actor, Operation, Operations},
};
use keywright_json::is_control_or_invisible;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
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

/// The properties of a request before it is handled.
pub(super) struct RequestFacts {
    pub(super) time: DateTime<Utc>,
    pub(super) request_id: Option<Uuid>,
    pub(super) method: Method,
    /// The path and query, truncated to their limit.
    pub(super) request: String,
    pub(super) source: Option<IpAddr>,
    pub(super) peer: Option<SocketAddr>,
    pub(super) action: &'static str,
}

/// Returns the lines for a completed request, and their number: one per accessed resource, or one for the request itself.
pub(super) fn lines(
    facts: &RequestFacts,
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
    let subject = truncated(subject, TEXT_BYTES_MAX);
    let method = truncated(facts.method.as_str(), METHOD_BYTES_MAX);
    let mut lines = Vec::with_capacity(LINE_BYTES);
    let mut push = |accessed: Option<&AccessedResource>, address_bytes_max: usize| {
        let name = accessed
            .map(|accessed| truncated(&accessed.name, TEXT_BYTES_MAX))
            .filter(|name| !name.is_empty());
        let request = truncated(&facts.request, address_bytes_max);
        let of_resource = details_of(accessed);
        let event = Event {
            time: facts.time.timestamp_millis(),
            request_id: facts.request_id,
            actor: caller.actor().as_str(),
            subject: &subject,
            authentication,
            method: Some(&method),
            request: Some(&request),
            status,
            source: facts.source,
            peer: facts.peer,
            destination,
            action: action.unwrap_or(facts.action),
            operation: accessed.map(|accessed| accessed.operation.as_str()),
            resource_name: name.as_deref(),
            resource_id: accessed.and_then(|accessed| accessed.resource_id),
            version_id: accessed.and_then(|accessed| accessed.version_id),
            request_details: of_resource.as_ref().or(details.as_ref()),
        };
        push_line(&mut lines, &event, format);
    };
    let accessed = caller.trail().accessed();
    if accessed.is_empty() {
        push(None, ADDRESS_BYTES_MAX);
    }
    let address_bytes_max = iter::once(ADDRESS_BYTES_MAX).chain(iter::repeat(REPEATED_BYTES_MAX));
    for (resource, address_bytes_max) in accessed.iter().zip(address_bytes_max) {
        push(Some(resource), address_bytes_max);
    }
    let count = accessed.len().max(1);
    (lines, u64::try_from(count).unwrap_or(u64::MAX))
}

/// Returns the details of one resource: the actor and operations of a permission, or that the response contained the value of
/// a version. Each resource has its own event, so details are never truncated: an actor has at most 255 characters, and there
/// are five operations.
fn details_of(accessed: Option<&AccessedResource>) -> Option<Value> {
    let accessed = accessed?;
    if accessed.is_value_disclosed {
        return Some(json!({"existing_value_disclosed": true}));
    }
    let granted_to = accessed.granted.as_ref()?;
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

fn bounded(details: Value) -> Value {
    if details.to_string().len() <= DETAILS_BYTES_MAX {
        details
    } else {
        json!({"omitted": format!("longer than {DETAILS_BYTES_MAX} bytes")})
    }
}

/// Returns the path and query, truncated to their limit. Only known query parameters are included: others could be a token or
/// a value sent by mistake, which must not be stored for years.
pub(super) fn logged_target(uri: &Uri) -> String {
    let mut text = uri.path().to_owned();
    for (index, pair) in uri.query().into_iter().flat_map(pairs).enumerate() {
        text.push(if index == 0 { '?' } else { '&' });
        text.push_str(if is_known(pair) { pair } else { OMITTED });
        if text.len() > REQUEST_BYTES_MAX {
            break;
        }
    }
    match truncated(&text, REQUEST_BYTES_MAX) {
        Cow::Borrowed(_) => text,
        Cow::Owned(truncated) => truncated,
    }
}

fn pairs(query: &str) -> impl Iterator<Item = &str> {
    query.split('&').filter(|pair| !pair.is_empty())
}

fn is_known(pair: &str) -> bool {
    form_urlencoded::parse(pair.as_bytes())
        .next()
        .is_some_and(|(name, _)| PARAMETERS.contains(&name.as_ref()))
}

/// Truncates a text to a limit in bytes. A truncated text ends with an ellipsis, which does not count towards the limit.
fn truncated(text: &str, bytes_max: usize) -> Cow<'_, str> {
    if text.len() <= bytes_max {
        return Cow::Borrowed(text);
    }
    let end = text.floor_char_boundary(bytes_max);
    Cow::Owned(format!("{}…", text.get(..end).unwrap_or_default()))
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

/// The known query parameters. None of them contains a credential's value.
const PARAMETERS: [&str; 14] = [
    "actor",
    "all_types",
    "credential_name",
    "current",
    "derived_from",
    "effective",
    "expires-within-days",
    "generated_by",
    "name",
    "name-like",
    "operation",
    "path",
    "provenance",
    "versions",
];

/// The placeholder for an unknown parameter.
const OMITTED: &str = "not-shown";

/// Maximum length of a path, and of a path with its query, in bytes: a name of 255 characters fits in any encoding.
const REQUEST_BYTES_MAX: usize = 2_048;

/// Maximum length of a path and query, including the ellipsis, in bytes.
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

/// The typical maximum size of a line, in bytes.
const LINE_BYTES: usize = 768;

/// The only control character of ASCII that JSON strings may contain.
const DELETE: u8 = 0x7f;

/// The lowest severity, because events are not alarms.
const SEVERITY: &str = "0";

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;
    use crate::router::routes;

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

    fn facts() -> RequestFacts {
        RequestFacts {
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
    fn texts_beyond_the_limit_are_truncated_between_characters() {
        for (text, bytes_max, expected) in [
            ("abcd", 4, "abcd"),
            ("abcde", 4, "abcd…"),
            ("aää", 5, "aää"),
            ("aäää", 4, "aä…"),
        ] {
            assert_eq!(truncated(text, bytes_max), expected);
        }
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
        caller.trail().set_action("FIND");
        caller.trail().set_details(json!({"path": "/a"}));
        let (text, count) = lines(&facts(), &caller, 200, "here", AuditFormat::Json);
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

    #[test]
    fn every_documented_query_parameter_is_audited() {
        for parameter in routes()
            .iter()
            .flat_map(|route| &route.description.parameters)
        {
            assert!(PARAMETERS.contains(&parameter.name), "{}", parameter.name);
        }
    }
}
