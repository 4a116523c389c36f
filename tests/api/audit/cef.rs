//! The trail in the Common Event Format, and input that tries to add lines or fields.

use std::{collections::BTreeMap, fmt::Write};

use keywright_harness::{Options, Response, ReusedServer, Server};
use reqwest::Method;
use serde_json::json;

use super::events_of;

// The trail in the Common Event Format, read by an independent parser.

/// A parsed line of CEF.
pub(super) struct Cef {
    pub(super) header: Vec<String>,
    pub(super) extension: BTreeMap<String, String>,
}

impl Cef {
    /// Parses a line: seven fields, each ended by an unescaped `|`, and pairs. A key is the word before an unescaped
    /// `=`; its value ends before the space before the next key.
    pub(super) fn parse(line: &str) -> Self {
        let mut header = vec![String::new()];
        let mut characters = line.chars();
        while header.len() < 8 {
            let field = header.last_mut().unwrap();
            match characters.next().unwrap_or_else(|| unreachable!("{line}")) {
                '\\' => {
                    let escaped = characters.next().unwrap();
                    assert!(['\\', '|'].contains(&escaped), "{line}");
                    field.push(escaped);
                }
                '|' => header.push(String::new()),
                character => field.push(character),
            }
        }
        header.pop();
        Self {
            header,
            extension: extension(characters.as_str()),
        }
    }

    /// Returns the value of the custom key with this label.
    pub(super) fn labelled(&self, label: &str) -> Option<&str> {
        let (key, _) = self
            .extension
            .iter()
            .find(|(key, value)| key.ends_with("Label") && *value == label)?;
        let value = self.extension.get(key.trim_end_matches("Label"));
        Some(value.unwrap_or_else(|| unreachable!("{label} has no value")))
    }
}

fn extension(text: &str) -> BTreeMap<String, String> {
    let mut pairs: Vec<(String, String)> = Vec::new();
    let mut read = String::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next().unwrap() {
                'n' => read.push('\n'),
                'r' => read.push('\r'),
                escaped => {
                    assert!(['\\', '='].contains(&escaped), "{text}");
                    read.push(escaped);
                }
            },
            '=' => {
                let (value, key) = match read.rsplit_once(' ') {
                    Some((value, key)) => (value.to_owned(), key.to_owned()),
                    None => (String::new(), read.clone()),
                };
                if let Some((_, last)) = pairs.last_mut() {
                    *last = value;
                }
                pairs.push((key, String::new()));
                read.clear();
            }
            character => read.push(character),
        }
    }
    pairs.last_mut().unwrap().1 = read;
    let count = pairs.len();
    let pairs: BTreeMap<_, _> = pairs.into_iter().collect();
    assert_eq!(pairs.len(), count, "duplicate key: {text}");
    pairs
}

/// Starts a server that writes its audit trail in CEF.
pub(super) async fn server() -> ReusedServer {
    let section =
        "[audit]\nsink = \"file\"\nfile = \"audit.log\"\nformat = \"cef\"\nhost = \"vault-1\"";
    Server::reused_with(&Options::default().audit(section)).await
}

/// Returns the last event.
pub(super) fn last(server: &Server) -> Cef {
    Cef::parse(server.audit_trail().lines().last().unwrap())
}

#[tokio::test]
async fn a_cef_event_has_all_fields_with_their_labels() {
    let server = server().await;
    let version = server.set_value("/a", "v").await;
    let response = server.get("/api/v1/data?name=/a").await.expect(200);
    assert_eq!(server.audit_trail().lines().count(), 2);
    let event = last(&server);
    let product = response.header("server").unwrap();
    let product_version = product.split_once('/').unwrap().1;
    assert_eq!(
        event.header,
        [
            "CEF:0",
            "Keywright",
            "keywright",
            product_version,
            "GET /api/v1/data",
            "GET /api/v1/data",
            "0"
        ]
    );
    for (key, value) in [
        ("suser", "developer"),
        ("suid", "uaa-client:developer"),
        ("request", "/api/v1/data?name=/a"),
        ("requestMethod", "GET"),
        ("src", "127.0.0.1"),
        ("dst", "vault-1"),
        ("deviceAction", "GET"),
        ("externalId", response.header("x-request-id").unwrap()),
    ] {
        assert_eq!(event.extension[key], value, "{key}");
    }
    for (label, value) in [
        ("userAuthenticationMechanism", "uaa"),
        ("versionUuid", version["id"].as_str().unwrap()),
        ("httpStatusCode", "200"),
        ("resourceName", "/a"),
        ("operation", "read"),
    ] {
        assert_eq!(event.labelled(label), Some(value), "{label}");
    }
    assert!(event.extension["rt"].parse::<u64>().is_ok());
    assert!(event.labelled("resourceUuid").is_some());
    assert!(event.labelled("peer").unwrap().starts_with("127.0.0.1:"));
    assert_eq!(event.labelled("requestDetails"), None);
}

#[tokio::test]
async fn request_details_are_json_in_a_cef_event() {
    let server = server().await;
    server.get("/api/v1/data?path=/a%3Db%5C").await.expect(200);
    let event = last(&server);
    let details: serde_json::Value =
        serde_json::from_str(event.labelled("requestDetails").unwrap()).unwrap();
    assert_eq!(details, json!({"path": "/a=b\\"}));
    for label in ["operation", "resourceName", "resourceUuid", "versionUuid"] {
        assert_eq!(event.labelled(label), None, "{label}");
    }
}

// Input from callers adds no line and no field.

/// Texts that would end a line, a field or a value if they were not escaped.
const ODD_TEXTS: [&str; 8] = [
    "/a\n{\"action\":\"GET\"}",
    "/a\r\nCEF:0|x|y|1|z|z|0|suid=root",
    "/a suid=root cs4=200",
    "/a|b\\|c\\",
    "/a\"}\u{2028}\u{85}\u{2029}",
    "/a\u{0}\u{1b}[2Jb",
    "/a\u{7f}b",
    "/a\u{202e}b\u{200b}c\u{feff}d\u{2066}e",
];

/// Returns whether a character is a control or formatting character.
fn is_unprintable(character: char) -> bool {
    let is_invisible = ['\u{200b}', '\u{202e}', '\u{2066}', '\u{feff}'].contains(&character);
    character.is_control() || is_invisible || matches!(character, '\u{2028}' | '\u{2029}')
}

/// Replaces U+0000, which the id of a client can't contain.
fn as_client_id(text: &str) -> String {
    text.replace('\0', "\u{1}")
}

/// Sends a text in each part of a request that is copied into events.
async fn send_in_each_input(server: &Server, text: &str) -> Vec<Response> {
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
    let server = Server::reused().await;
    for text in ODD_TEXTS {
        let responses = send_in_each_input(&server, text).await;
        let trail = server.audit_trail();
        assert!(
            trail
                .chars()
                .all(|character| character == '\n' || !is_unprintable(character)),
            "{trail:?}"
        );
        for response in &responses {
            assert_eq!(events_of(&server, response).len(), 1, "{text:?}");
        }
        let named = &events_of(&server, &responses[0])[0];
        assert_eq!(named["resource_name"], text);
        let acting = &events_of(&server, &responses[4])[0];
        assert_eq!(acting["subject"], as_client_id(text));
        let actor = format!("uaa-client:{}", as_client_id(text));
        assert_eq!(acting["actor"], actor);
    }
}

#[tokio::test]
async fn input_adds_no_line_or_field_to_a_cef_event() {
    let server = server().await;
    for text in ODD_TEXTS {
        let before = server.audit_trail().lines().count();
        let responses = send_in_each_input(&server, text).await;
        let trail = server.audit_trail();
        let lines: Vec<_> = trail.split('\n').skip(before).collect();
        assert_eq!(lines.len(), responses.len() + 1, "{text:?}");
        for line in &lines[..responses.len()] {
            let event = Cef::parse(line);
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
                c if is_unprintable(c) => ' ',
                c => c,
            })
            .collect();
        let named = Cef::parse(lines[0]);
        assert_eq!(named.labelled("resourceName"), Some(printable.as_str()));
        let acting = Cef::parse(lines[4]);
        assert_eq!(acting.extension["suser"], printable);
    }
}
