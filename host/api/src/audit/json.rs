//! Events as JSON.

use std::io::Write;

use super::event::{Event, is_control};

/// Adds an event as JSON, without a line break.
pub(super) fn push_event(lines: &mut Vec<u8>, event: &Event<'_>) {
    let start = lines.len();
    // Strings, numbers and JSON values can always be serialized.
    let _ = serde_json::to_writer(&mut *lines, event);
    escape_from(start, lines);
}

/// Escapes characters that are allowed in JSON strings, but that other readers interpret as line breaks.
fn escape_from(start: usize, lines: &mut Vec<u8>) {
    let json = lines.get(start..).map(str::from_utf8);
    let Some(Ok(json)) = json.filter(|json| json.is_ok_and(|json| json.contains(is_control)))
    else {
        return;
    };
    let json = json.to_owned();
    lines.truncate(start);
    for character in json.chars() {
        // Writing to memory does not fail.
        let _ = if is_control(character) {
            write!(lines, "\\u{:04x}", u32::from(character))
        } else {
            write!(lines, "{character}")
        };
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::audit::event::{example, example_without_a_request};

    fn json_line(event: &Event<'_>) -> String {
        let mut lines = Vec::new();
        push_event(&mut lines, event);
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
