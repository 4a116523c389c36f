//! Malformed HTTP/1.1 and HTTP/2, and callers without permission.

use std::{thread, time::Duration};

use keywright_harness::{Options, Server, signal};
use reqwest::{Method, header::HOST};
use serde_json::json;

#[tokio::test]
async fn heads_with_ambiguous_host_or_length_are_400() {
    let server = Server::start().await;
    for (head, status) in [
        ("GET /health HTTP/1.1\r\nHost: localhost\r\n", 200),
        ("GET /health HTTP/1.1\r\nhost: localhost:8844\r\n", 200),
        ("GET /health HTTP/1.1\r\nHost: [::1]:8844\r\n", 200),
        (
            "GET https://localhost/health HTTP/1.1\r\nHost: localhost\r\n",
            200,
        ),
        (
            "GET https://localhost/health HTTP/1.1\r\nHost: other\r\n",
            200,
        ),
        ("GET /health HTTP/1.0\r\n", 200),
        ("GET /health HTTP/1.0\r\nHost: localhost\r\n", 200),
        ("GET /health HTTP/1.1\nHost: localhost\n", 200),
        ("GET /health HTTP/1.1\r\n", 400),
        ("GET /health HTTP/1.1\r\nHost:\r\n", 400),
        ("GET /health HTTP/1.1\r\nHost: \t \r\n", 400),
        ("GET /health HTTP/1.1\r\nHost: :8844\r\n", 400),
        ("GET /health HTTP/1.1\r\nHost: a b\r\n", 400),
        ("GET /health HTTP/1.1\r\nHost: user@localhost\r\n", 400),
        ("GET /health HTTP/1.1\r\nHost: a/b\r\n", 400),
        ("GET /health HTTP/1.1\r\nHost: \u{e4}\r\n", 400),
        ("GET /health HTTP/1.1\r\nHost: a\r\nHost: a\r\n", 400),
        (
            "GET /health HTTP/1.1\r\nHost: a\r\nX: y\r\nhost: b\r\n",
            400,
        ),
        ("GET /health HTTP/1.0\r\nHost: a\r\nHost: a\r\n", 400),
        ("GET https://localhost/health HTTP/1.1\r\n", 400),
        (
            "GET https://user@localhost/health HTTP/1.1\r\nHost: localhost\r\n",
            400,
        ),
        ("GET /unknown%2fpath HTTP/1.1\r\n", 400),
        ("GET /health HTTP/1.1\r\nHost: a\r\n folded\r\n", 400),
        ("GET /health HTTP/1.1\r\nHost : a\r\n", 400),
        ("GET /health HTTP/1.1\r\n Host: a\r\n", 400),
        ("GET /health HTTP/1.1\r\nHost: a\rX: b\r\n", 400),
        ("GET /health HTTP/1.1\r\nHost: a\0\r\n", 400),
        ("GET /health HTTP/1.2\r\nHost: a\r\n", 400),
        ("GET /health HTTP/3\r\nHost: a\r\n", 400),
        ("GET  /health HTTP/1.1\r\nHost: a\r\n", 400),
        ("GET /he alth HTTP/1.1\r\nHost: a\r\n", 400),
    ] {
        assert_eq!(status_of(&server, head, ""), status, "{head:?}");
    }
    for (fields, body, status) in [
        ("Transfer-Encoding: chunked\r\n", "0\r\n\r\n", 200),
        ("transfer-encoding: Chunked\r\n", "0\r\n\r\n", 200),
        ("Content-Length: 2\r\n", "{}", 200),
        ("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n", 400),
        ("Transfer-Encoding: chunked, chunked\r\n", "0\r\n\r\n", 400),
        (
            "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n",
            "0\r\n\r\n",
            400,
        ),
        (
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
            "0\r\n\r\n",
            400,
        ),
        ("Transfer-Encoding: identity\r\n", "", 400),
        ("Transfer-Encoding: chunked, gzip\r\n", "0\r\n\r\n", 400),
        ("Transfer-Encoding: xchunked\r\n", "0\r\n\r\n", 400),
        ("Transfer-Encoding:\r\n", "", 400),
        ("Transfer-Encoding: chunked;q=1\r\n", "0\r\n\r\n", 400),
        ("Content-Length: 1\r\nContent-Length: 2\r\n", "{}", 400),
        ("Content-Length: +2\r\n", "{}", 400),
        ("Content-Length: -1\r\n", "{}", 400),
        ("Content-Length: 0x2\r\n", "{}", 400),
        ("Content-Length: 99999999999999999999\r\n", "{}", 400),
    ] {
        let head = format!("GET /health HTTP/1.1\r\nHost: localhost\r\n{fields}");
        assert_eq!(status_of(&server, &head, body), status, "{fields:?}");
    }
    server.get("/health").await.expect(200);
}

#[tokio::test]
async fn an_http2_request_with_a_wrong_or_repeated_host_is_400() {
    let server = Server::start().await;
    let authority = server.base_url().trim_start_matches("https://");
    for (hosts, status) in [
        (vec![authority], 200),
        (vec!["other"], 400),
        (vec![""], 400),
        (vec![authority, authority], 400),
    ] {
        let mut request = server.request(Method::GET, "/health");
        for host in &hosts {
            request = request.header(HOST, *host);
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.version(), reqwest::Version::HTTP_2);
        assert_eq!(response.status(), status, "{hosts:?}");
    }
    server.get("/health").await.expect(200);
}

#[tokio::test]
async fn one_byte_past_the_header_limit_is_431_however_it_arrives() {
    const MAX: usize = 10_000;
    let lines = format!("header_bytes_max = {MAX}");
    let server = Server::start_with(&Options::default().server_settings(&lines)).await;
    let frame = "GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n";
    let one_field = |bytes: usize| {
        let rest = bytes - frame.len() - "X: \r\n\r\n".len();
        format!("{frame}X: {}\r\n\r\n", "a".repeat(rest))
    };
    let many_fields = |bytes: usize| {
        let field = format!("X: {}\r\n", "a".repeat(195));
        let rest = bytes - frame.len() - 2;
        let filler = rest % field.len() + field.len();
        let fields = field.repeat((rest - filler) / field.len());
        format!(
            "{frame}{fields}X: {}\r\n\r\n",
            "a".repeat(filler - "X: \r\n".len())
        )
    };
    let blanks = |bytes: usize| {
        let rest = bytes - frame.len() - "X:a\r\n\r\n".len();
        format!("{frame}X:{}a\r\n\r\n", " ".repeat(rest))
    };
    for (bytes, status) in [
        (MAX, 200),
        (MAX + 1, 431),
        (MAX + 4_000, 431),
        (2 * MAX, 431),
    ] {
        for head in [one_field(bytes), many_fields(bytes), blanks(bytes)] {
            assert_eq!(head.len(), bytes);
            for first in [bytes, MAX - 1, 100] {
                let response = status_of_parts(&server, &head, first);
                assert_eq!(response, status, "{bytes} bytes, {first} first");
            }
        }
    }
    server.get("/health").await.expect(200);
}

#[tokio::test]
async fn a_wildcard_in_different_letter_case_matches_no_stored_name() {
    let server = Server::start().await;
    server.generate_authority("/secret/ca", None).await;
    server.generate_leaf("/secret/leaf", "/secret/ca").await;
    let hidden = json!({"key": "hidden"});
    server.stored("/secret/json", "json", hidden).await;
    let caller = server.as_client("caller").await;
    let all = ["read", "write", "delete", "read_acl", "write_acl"];
    for path in ["/SECRET/*", "/Secret/*", "/free/*"] {
        server.grant(path, caller.actor(), &all).await;
    }
    for folder in ["SECRET", "Secret"] {
        let of = |name: &str| format!("/{folder}/{name}");
        for path in [
            format!("/api/v1/data?name={}", of("json")),
            format!("/api/v1/data?name={}&current=true", of("json")),
            format!("/api/v1/data?name={}&versions=1", of("JSON")),
            format!("/api/v1/certificates?name={}", of("ca")),
            format!("/api/v1/permissions?credential_name={}", of("json")),
        ] {
            caller.get(&path).await.expect(404);
        }
        let delete = format!("/api/v1/data?name={}", of("json"));
        caller.delete(&delete).await.expect(404);
        let leaf = json!({"common_name": "own", "ca": of("ca")});
        let set = json!({"certificate": "x", "ca_name": of("ca")});
        let document = json!({"a": [{"credentials": {"credhub-ref": of("json")}}]});
        for (path, body, status) in [
            ("data", json!({"name": of("json"), "type": "password"}), 403),
            (
                "data",
                json!({"name": of("json"), "type": "password", "mode": "no-overwrite"}),
                403,
            ),
            (
                "data",
                json!({"name": "/free/leaf", "type": "certificate", "parameters": leaf}),
                404,
            ),
            ("regenerate", json!({"name": of("leaf")}), 403),
            ("bulk-regenerate", json!({"signed_by": of("ca")}), 404),
            ("interpolate", document, 404),
        ] {
            let response = caller.post(&format!("/api/v1/{path}"), body.clone()).await;
            assert_eq!(response.status, status, "{path} {body}: {response:?}");
            response.assert_lacks("hidden");
        }
        for (name, credential_type, value) in [
            (of("json"), "json", json!({"key": "other"})),
            (of("leaf"), "certificate", set),
        ] {
            let body = json!({"name": name, "type": credential_type, "value": value});
            let response = caller.put("/api/v1/data", body.clone()).await;
            assert_ne!(response.status, 200, "{body}: {response:?}");
        }
    }
    let stored = server
        .get("/api/v1/data?name=/secret/json")
        .await
        .expect(200);
    assert_eq!(stored.json()["data"].as_array().unwrap().len(), 1);
    // A permission applies to credentials whose names are stored in the same letter case.
    let own = json!({"name": "/SECRET/own", "type": "value", "value": "v"});
    caller.put("/api/v1/data", own).await.expect(200);
    caller
        .get("/api/v1/data?name=/SECRET/own")
        .await
        .expect(200);
    caller
        .get("/api/v1/data?name=/Secret/own")
        .await
        .expect(200);
}

#[tokio::test]
async fn unexpected_frames_do_not_fill_the_log() {
    let server = Server::start().await;
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    let settings = b"\0\0\0\x04\0\0\0\0\0";
    let unexpected_pong = b"\0\0\x08\x06\x01\0\0\0\0unasked.";
    bytes.extend(settings.iter().chain(&unexpected_pong.repeat(1_000)));
    let connection = server.connect_by("h2");
    let received = connection.exchange(&bytes, Duration::from_secs(1));
    assert!(received.starts_with(b"\0\0"), "{received:?}");
    let log = server.whole_log().await;
    assert!(!log.contains("\"target\":\"h2"), "{log}");
}

#[tokio::test]
async fn signals_of_failing_writes_do_not_kill_the_server() {
    let server = Server::start().await;
    for name in ["XFSZ", "PIPE"] {
        for _ in 0..3 {
            signal(server.process_id(), name);
            thread::sleep(Duration::from_millis(20));
            server.get("/health").await.expect(200);
        }
    }
}

/// Returns the status of the response to a request with this incomplete head and this body.
fn status_of(server: &Server, head: &str, body: &str) -> u16 {
    let head = format!("{head}Connection: close\r\n\r\n{body}");
    status_of_parts(server, &head, head.len())
}

/// Sends the first bytes, and the rest after a delay. Returns the status of the response.
fn status_of_parts(server: &Server, bytes: &str, first: usize) -> u16 {
    let mut connection = server.connect();
    let (first, rest) = bytes.split_at(first.min(bytes.len()));
    connection.send(first.as_bytes());
    if !rest.is_empty() {
        thread::sleep(Duration::from_millis(30));
        connection.send(rest.as_bytes());
    }
    let received = connection.receive_to_end();
    let text = String::from_utf8_lossy(&received);
    let status = text.strip_prefix("HTTP/1.").and_then(|text| text.get(2..5));
    status
        .unwrap_or_else(|| panic!("no response: {text}"))
        .parse()
        .unwrap()
}
