//! Random mutations of valid input with a fixed seed, one test per parser. This module covers JSON bodies, tokens, paths,
//! queries, and certificates set by callers.
//!
//! `KEYWRIGHT_TEST_MUTATION_SECONDS` makes each test run for that long instead of a fixed number of rounds, and
//! `KEYWRIGHT_TEST_SEED` starts from another seed. To attack a release build:
//!
//! ```text
//! KEYWRIGHT_TEST_MUTATION_SECONDS=600 cargo test --release --workspace --test attacks -- mutation --test-threads 8
//! ```

mod generator;
mod http;

use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use jsonwebtoken::Algorithm;
use keywright_harness::{
    Response, Server,
    mint::{Mint, present, sign_texts, signing_key},
};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    assert_alive, assert_no_fault, assert_runs,
    json::{
        attacked, bodies,
        corpus::{RAW_VALUE_KEY, reserved_key_text},
        filled, send,
    },
};
use generator::{ROUNDS_BETWEEN_CHECKS, Random, Rounds};

/// Parts of JSON.
const JSON_WORDS: [&[u8]; 26] = [
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"\"",
    b"\\",
    b"\\u0000",
    b"\\ud800",
    b"null",
    b"true",
    b"-0",
    b"1e400",
    b"18446744073709551616",
    b"0.1",
    b"{\"\":",
    b"[[[[[[[[",
    b"{\"$serde_json::private::RawValue\":\"1\"}",
    b"\"\\u0024serde_json::private::Number\"",
    b"\"parameters\":",
    b"\"name\":",
    b"\"value\":{}",
    b"\"type\":\"certificate\"",
    b"\"mode\":\"converge\"",
    b"\xff",
];

/// Valid texts for fields of bodies.
const VALUES: [&str; 8] = [
    r#""a""#,
    "30",
    "true",
    "null",
    r#"{"a":[1,{"b":null}]}"#,
    r#"["read","write"]"#,
    r#""00000000-0000-0000-0000-000000000000""#,
    r#"{"path":"/j","actor":"uaa-client:a","operations":["read"]}"#,
];

#[tokio::test]
async fn mutated_bodies_cause_no_server_error() {
    let (server, certificate_id) = attacked().await;
    let reserved = reserved_key_text(RAW_VALUE_KEY, 120, 125);
    let values = [&VALUES[..], &[&reserved]].concat();
    let bodies = bodies();
    let mut rounds = Rounds::new(1, 1_500);
    while let Some((round, mut random)) = rounds.next() {
        // The last body enables read-only mode, in which no further mutation would be stored.
        let (method, path, body, _) = random.pick(&bodies[..bodies.len() - 1]);
        let body = filled(body, random.pick(&values).as_bytes());
        let body = random.mutated(&body, &JSON_WORDS);
        let path = path.replace("CERTIFICATE", &certificate_id);
        let response = send(&server, method, &path, body.clone()).await;
        let attack = format!("round {round}, {method} {path}: {}", body.escape_ascii());
        assert_no_fault(&response, &attack);
        check(&server, round, &attack).await;
    }
    assert_alive(&server, "all rounds").await;
}

#[tokio::test]
async fn mutated_tokens_cause_no_server_error() {
    let server = Server::start().await;
    let mint = Mint::of(&server).await;
    let (header, claims) = (mint.header().to_string(), mint.claims().to_string());
    let mut rounds = Rounds::new(2, 1_000);
    while let Some((round, mut random)) = rounds.next() {
        let token = mutated_token(&mut random, &header, &claims);
        let attack = format!("round {round}: {token}");
        assert_no_fault(&present(&server, &token).await, &attack);
        check(&server, round, &attack).await;
    }
    assert_alive(&server, "all rounds").await;
}

/// Returns a token with changed text, header or claims, signed or not.
fn mutated_token(random: &mut Random, header: &str, claims: &str) -> String {
    let signed =
        |header: &str, claims: &str| sign_texts(header, claims, Algorithm::RS256, &signing_key());
    let lossy = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match random.below(4) {
        0 => {
            let bytes = random.mutated(signed(header, claims).as_bytes(), &[b".", b"=", b"e30"]);
            bytes
                .into_iter()
                .filter(u8::is_ascii_graphic)
                .map(char::from)
                .collect()
        }
        1 => signed(
            &lossy(&random.mutated(header.as_bytes(), &JSON_WORDS)),
            claims,
        ),
        2 => signed(
            header,
            &lossy(&random.mutated(claims.as_bytes(), &JSON_WORDS)),
        ),
        _ => {
            let part = |text: &[u8]| URL_SAFE_NO_PAD.encode(text);
            let header = random.mutated(header.as_bytes(), &JSON_WORDS);
            format!(
                "{}.{}.{}",
                part(&header),
                part(claims.as_bytes()),
                part(&[0; 256])
            )
        }
    }
}

/// Paths and queries of read requests.
const TARGETS: [&str; 14] = [
    "/api/v1/data?name=/a/b&current=true",
    "/api/v1/data?name=a&versions=2",
    "/api/v1/data?path=/a",
    "/api/v1/data?name-like=b&expires-within-days=30",
    "/api/v1/data/00000000-0000-0000-0000-000000000000",
    "/api/v1/certificates?name=/root",
    "/api/v1/certificates/00000000-0000-0000-0000-000000000000/versions?current=true",
    "/api/v2/permissions?path=/a&actor=uaa-client:a",
    "/api/v2/permissions/explain?path=/a&actor=uaa-client:a&operation=read",
    "/api/v1/permissions?credential_name=/a",
    "/api/v1/permissions?credential_name=/a&actor=uaa-client:a",
    "/api/v1/data?name=/a&name=/b",
    "/api/v1/types",
    "/docs",
];

/// Parts of paths and queries.
const TARGET_WORDS: [&[u8]; 18] = [
    b"/",
    b"//",
    b"/../",
    b"/./",
    b"%2f",
    b"%00",
    b"%",
    b"%ff",
    b"&",
    b"=",
    b"?",
    b"+",
    b"*",
    b";",
    b"name=",
    b"path=",
    b"versions=-1",
    "ä".as_bytes(),
];

#[tokio::test]
async fn mutated_paths_cause_no_server_error_and_need_a_token() {
    let server = Server::start().await;
    server.stored("/a/b", "json", json!({"a": 1})).await;
    // The only page in `TARGETS` that needs no token.
    let open = server.get("/docs").await.expect(200).body;
    let mut rounds = Rounds::new(3, 1_500);
    while let Some((round, mut random)) = rounds.next() {
        let target = random.mutated(TARGETS[round % TARGETS.len()].as_bytes(), &TARGET_WORDS);
        let target: String = target.iter().map(|byte| as_written(*byte)).collect();
        let method = random.pick(&[Method::GET, Method::GET, Method::DELETE, Method::OPTIONS]);
        let path = format!("/{}", target.trim_start_matches('/'));
        let request = server.authorized(method.clone(), &path);
        let attack = format!("round {round}: {method} {target}");
        let anonymous = server.request(method.clone(), &path);
        for (request, has_token) in [(request, true), (anonymous, false)] {
            // Requests rejected by the client itself do not test the server.
            match Response::try_to(request).await {
                Ok(response) => {
                    assert_no_fault(&response, &attack);
                    let is_open = has_token || response.status != 200 || response.body == open;
                    assert!(is_open, "{attack}: {response:?}");
                }
                Err(cause) => {
                    let is_of_client = cause.is_builder() || cause.is_request();
                    assert!(is_of_client, "{attack}: {cause}");
                }
            }
        }
        check(&server, round, &attack).await;
    }
    assert_alive(&server, "all rounds").await;
}

/// Encodes a byte for a path or query.
fn as_written(byte: u8) -> String {
    if byte.is_ascii_graphic() && byte != b'#' {
        char::from(byte).to_string()
    } else {
        format!("%{byte:02X}")
    }
}

async fn check(server: &Server, round: usize, attack: &str) {
    assert_runs(server, attack);
    if round.is_multiple_of(ROUNDS_BETWEEN_CHECKS) {
        assert_alive(server, attack).await;
    }
}

/// Parts of DER: tags with short, long and indefinite lengths.
const DER_WORDS: [&[u8]; 16] = [
    b"\x30\x80",
    b"\x30\x00",
    b"\x30\x84\xff\xff\xff\xff",
    b"\x02\x01\x00",
    b"\x02\x02\x00\x80",
    b"\x03\x01\x00",
    b"\x03\x02\x07\x80",
    b"\x04\x00",
    b"\x05\x00",
    b"\x06\x03\x55\x1d\x13",
    b"\x06\x04\x80\x55\x1d\x13",
    b"\x0c\x02\xff\xfe",
    b"\x1e\x02\xd8\x00",
    b"\x17\x0d991332250000Z",
    b"\xa3\x00",
    b"\x31\x00",
];

/// Parts of PEM.
const PEM_WORDS: [&[u8]; 6] = [
    b"-----BEGIN CERTIFICATE-----",
    b"-----END CERTIFICATE-----",
    b"\n",
    b"=",
    b"\r\n\r\n",
    b"\0",
];

#[tokio::test]
async fn mutated_certificates_cause_no_server_error() {
    let server = Server::start().await;
    let root = json!({"is_ca": true, "common_name": "root"});
    let mut root = server.generated("/root", "certificate", root).await;
    let leaf = json!({
        "ca": "/root", "common_name": "leaf", "alternative_names": ["a.example", "10.0.0.1"],
        "extended_key_usage": ["client_auth"], "organization_unit": "app:1",
    });
    let mut leaf = server.generated("/leaf", "certificate", leaf).await;
    let values = [root["value"].take(), leaf["value"].take()];
    let mut rounds = Rounds::new(4, 600);
    while let Some((round, mut random)) = rounds.next() {
        let value = mutated_value(&mut random, &values[round % 2]);
        let attack = format!("round {round}: {value}");
        let response = server.set("/set", "certificate", value).await;
        assert_no_fault(&response, &attack);
        if response.status == 200 {
            // An accepted certificate can be read, and can sign a leaf or is rejected as a CA.
            assert_no_fault(&server.get("/api/v1/certificates?name=/set").await, &attack);
            let leaf = json!({"ca": "/set", "common_name": "of-set"});
            assert_no_fault(
                &server.generate("/of-set", "certificate", leaf).await,
                &attack,
            );
        }
        check(&server, round, &attack).await;
    }
    assert_alive(&server, "all rounds").await;
}

/// Changes one field of a certificate's value.
fn mutated_value(random: &mut Random, value: &Value) -> Value {
    let mut value = value.clone();
    let field = *random.pick(&[
        "certificate",
        "certificate",
        "certificate",
        "ca",
        "private_key",
    ]);
    let pem = value[field].as_str().unwrap();
    let changed = if random.below(4) == 0 {
        String::from_utf8_lossy(&random.mutated(pem.as_bytes(), &PEM_WORDS)).into_owned()
    } else {
        with_mutated_der(random, pem)
    };
    value[field] = json!(changed);
    value
}

fn with_mutated_der(random: &mut Random, pem: &str) -> String {
    let (head, body) = pem.trim().split_once('\n').unwrap();
    let (body, end) = body.rsplit_once('\n').unwrap();
    let der = STANDARD.decode(body.replace(['\r', '\n'], "")).unwrap();
    let der = random.mutated(&der, &DER_WORDS);
    format!("{head}\n{}\n{end}\n", STANDARD.encode(der))
}
