//! Input from callers adds no line and no field.

use std::fmt::Write;

use keywright_harness::{Answer, Server};
use reqwest::Method;
use serde_json::json;

use super::{cef, events_of};

/// Texts that would end a line, a field or a value if they were not escaped.
const ODD: [&str; 7] = [
    "/a\n{\"action\":\"GET\"}",
    "/a\r\nCEF:0|x|y|1|z|z|0|suid=root",
    "/a suid=root cs4=200",
    "/a|b\\|c\\",
    "/a\"}\u{2028}\u{85}\u{2029}",
    "/a\u{0}\u{1b}[2Jb",
    "/a\u{202e}b\u{200b}c\u{feff}d\u{2066}e",
];

/// Whether a character is a control or formatting character.
fn acts(character: char) -> bool {
    let is_unseen = ['\u{200b}', '\u{202e}', '\u{2066}', '\u{feff}'].contains(&character);
    character.is_control() || is_unseen || matches!(character, '\u{2028}' | '\u{2029}')
}

/// The text as the id of a client, which cannot contain U+0000.
fn as_client_id(text: &str) -> String {
    text.replace('\0', "\u{1}")
}

/// Sends a text in each input that an event repeats.
async fn send_odd(server: &Server, text: &str) -> Vec<Answer> {
    let encoded = text.bytes().fold(String::new(), |mut encoded, byte| {
        // Writing to a string does not fail.
        let _ = write!(encoded, "%{byte:02X}");
        encoded
    });
    let odd_actor = server.as_client(&as_client_id(text)).await;
    let forwarded = server
        .authorized(Method::GET, "/api/v1/data?name=/a")
        .header("X-Forwarded-For", "1.1.1.1|suid=root \\");
    vec![
        server
            .post("/api/v1/regenerate", json!({"name": text}))
            .await,
        server.get(&format!("/api/v1/data?name={encoded}")).await,
        server.get(&format!("/api/v1/data?path={encoded}")).await,
        server.get(&format!("/nowhere/{encoded}|\\")).await,
        odd_actor.get("/api/v1/data?name=/a").await,
        server.send(forwarded).await,
    ]
}

#[tokio::test]
async fn a_json_event_is_one_line_with_the_escaped_input() {
    let server = Server::start().await;
    for text in ODD {
        let answers = send_odd(&server, text).await;
        let trail = server.audit_trail();
        assert!(
            trail
                .chars()
                .all(|character| character == '\n' || !acts(character)),
            "{trail:?}"
        );
        for answer in &answers {
            assert_eq!(events_of(&server, answer).len(), 1, "{text:?}");
        }
        let named = &events_of(&server, &answers[0])[0];
        assert_eq!(named["resource_name"], text);
        let acting = &events_of(&server, &answers[4])[0];
        assert_eq!(acting["subject"], as_client_id(text));
        let actor = format!("uaa-client:{}", as_client_id(text));
        assert_eq!(acting["actor"], actor);
    }
}

#[tokio::test]
async fn input_adds_no_line_or_field_to_a_cef_event() {
    let server = cef::server().await;
    for text in ODD {
        let before = server.audit_trail().lines().count();
        let answers = send_odd(&server, text).await;
        let trail = server.audit_trail();
        let lines: Vec<_> = trail.split('\n').skip(before).collect();
        assert_eq!(lines.len(), answers.len() + 1, "{text:?}");
        for line in &lines[..answers.len()] {
            let event = cef::Cef::parse(line);
            assert_eq!(event.header.len(), 7);
            let actor = &event.extension["suid"];
            assert!(actor.starts_with("uaa-client:"), "{actor}");
            assert_ne!(event.labelled("httpStatusCode"), Some("200 "), "{line}");
            assert_eq!(event.extension["src"], "127.0.0.1");
        }
        let printable: String = text
            .chars()
            .map(|c| match c {
                '\n' | '\r' => c,
                c if acts(c) => ' ',
                c => c,
            })
            .collect();
        let named = cef::Cef::parse(lines[0]);
        assert_eq!(named.labelled("resourceName"), Some(printable.as_str()));
        let acting = cef::Cef::parse(lines[4]);
        assert_eq!(acting.extension["suser"], printable);
    }
}
