//! The trail in the Common Event Format, read by an independent parser.

use std::collections::BTreeMap;

use keywright_harness::{Options, Server};
use serde_json::json;

use crate::given;

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

    /// The value of the custom key with a label.
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

/// A server whose trail is in CEF.
pub(super) async fn server() -> Server {
    let section =
        "[audit]\nsink = \"file\"\nfile = \"audit.log\"\nformat = \"cef\"\nhost = \"vault-1\"";
    Server::start_with(&Options::default().audit(section)).await
}

/// The last event.
pub(super) fn last(server: &Server) -> Cef {
    Cef::parse(server.audit_trail().lines().last().unwrap())
}

#[tokio::test]
async fn a_line_has_all_fields_under_their_labels() {
    let server = server().await;
    let version = given::set_value(&server, "/a", "v").await;
    let answer = server.get("/api/v1/data?name=/a").await.expect(200);
    assert_eq!(server.audit_trail().lines().count(), 2);
    let event = last(&server);
    let product = answer.header("server").unwrap();
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
        ("externalId", answer.header("x-request-id").unwrap()),
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
async fn details_are_json_within_the_line() {
    let server = server().await;
    server.get("/api/v1/data?path=/a%3Db%5C").await.expect(200);
    let event = last(&server);
    let details: serde_json::Value =
        serde_json::from_str(event.labelled("requestDetails").unwrap()).unwrap();
    assert_eq!(details, json!({"path": "/a=b\\"}));
    assert_eq!(event.labelled("resourceName"), None);
}
