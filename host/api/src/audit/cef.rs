//! Events in the Common Event Format, version 0 ("Implementing `ArcSight` Common Event Format", version 23).
//!
//! The seven fields of the header end with `|`, which is escaped in them, as is `\`. The extension is pairs of a key and a
//! value; in a value, `\` and `=` are escaped, and line breaks are written as `\n` and `\r`. The format has no other escapes:
//! other control characters become spaces.

use super::event::{Event, is_control};

/// Formats an event as one line, without a line break.
pub(super) fn line(event: &Event<'_>) -> String {
    let what = match (event.method, event.request) {
        (Some(method), Some(request)) => {
            let path = request.split('?').next().unwrap_or_default();
            format!("{method} {path}")
        }
        _ => event.action.to_owned(),
    };
    let mut line = String::from("CEF:0|Keywright|keywright|");
    for field in [env!("CARGO_PKG_VERSION"), what.as_str(), what.as_str()] {
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
    pairs.push_labelled("cs6", "requestDetails", event.details);
    pairs.push("externalId", event.request_id);
    pairs.push_labelled("flexString1", "operation", event.operation);
    pairs.push_labelled("flexString2", "peer", event.peer);
    pairs.0
}

/// The line with the pairs of its extension so far.
struct Pairs(String);

impl Pairs {
    /// Adds a pair, if there is a value.
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
            character if is_control(character) => line.push(' '),
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
            character if is_control(character) => line.push(' '),
            character => line.push(character),
        }
    }
}

/// Events are reports, not alarms.
const SEVERITY: &str = "0";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::event::{example, example_without_a_request};

    #[test]
    fn an_event_has_a_header_and_labelled_pairs() {
        assert_eq!(
            line(&example()),
            concat!(
                "CEF:0|Keywright|keywright|",
                env!("CARGO_PKG_VERSION"),
                "|GET /api/v1/data|GET /api/v1/data|0|rt=1800000000123 suser=app suid=uaa-client:app ",
                "cs1Label=userAuthenticationMechanism cs1=uaa request=/api/v1/data?name\\=/a ",
                "requestMethod=GET cs3Label=versionUuid cs3=00000000-0000-0000-0000-000000000003 ",
                "cs4Label=httpStatusCode cs4=200 src=10.0.0.1 dst=vault-1 cs2Label=resourceName cs2=/a ",
                "cs5Label=resourceUuid cs5=00000000-0000-0000-0000-000000000002 deviceAction=GET ",
                r#"cs6Label=requestDetails cs6={"a":"b\=c"} "#,
                "externalId=00000000-0000-0000-0000-000000000001 flexString1Label=operation ",
                "flexString1=read flexString2Label=peer flexString2=127.0.0.1:4321",
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
            details: None,
            ..example()
        };
        let line = line(&event);
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

    #[test]
    fn without_a_request_the_action_is_the_name() {
        let line = line(&example_without_a_request());
        let what = "|DELETE_BY_RETENTION|DELETE_BY_RETENTION|0|rt=";
        assert!(line.contains(what), "{line}");
        for key in [" request=", "requestMethod", " src=", "flexString2"] {
            assert!(!line.contains(key), "{key}: {line}");
        }
    }

    #[test]
    fn each_part_of_a_line_has_its_own_escapes() {
        let odd = "a|b\\c=d\ne\rf\u{85}g\u{2028}h\u{7}i";
        let event = Event {
            request: Some(odd),
            actor: odd,
            ..example()
        };
        let line = line(&event);
        assert!(line.contains(r"|GET a\|b\\c=d e f g h i|GET a\|"), "{line}");
        assert!(line.contains(r" suid=a|b\\c\=d\ne\rf g h i cs1"), "{line}");
        assert!(!line.contains(is_control), "{line:?}");
    }
}
