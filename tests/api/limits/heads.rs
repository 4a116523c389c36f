//! Limits on the heads of requests.

use keywright_harness::Server;
use reqwest::Method;
use tokio::io::AsyncWriteExt;

use super::{
    patient,
    raw::{HTTP1, Http1Answer, ORDINARY, read_answer, tls},
};

#[tokio::test]
async fn unknown_methods_are_not_in_the_access_log() {
    let server = Server::start().await;
    let method = "M".repeat(10_000);
    let head = format!("{method} /health HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(answer(&server, &head).await.status, 404);
    let log = server.whole_log().await;
    let mut lines = log
        .lines()
        .filter(|line| line.contains("keywright_api::access"));
    assert!(lines.clone().all(|line| line.len() < 1_000));
    assert!(lines.any(|line| line.contains(r#""http.method":"other""#)));
}

#[tokio::test]
async fn a_head_beyond_the_limit_is_431() {
    let server = Server::start_with(&patient("header_bytes_max = 8192")).await;
    for (bytes, status) in [(8_000, 200), (8_193, 431), (200_000, 431)] {
        let frame = "GET /health HTTP/1.1\r\nHost: localhost\r\nX-Long: \r\n\r\n";
        let long = "a".repeat(bytes - frame.len());
        let head = frame.replace("X-Long: ", &format!("X-Long: {long}"));
        assert_eq!(head.len(), bytes);
        assert_eq!(answer(&server, &head).await.status, status, "{bytes}");
    }
    for (bytes, status) in [(7_500, 200), (8_193, 431)] {
        let request = server
            .request(Method::GET, "/health")
            .header("x-long", "a".repeat(bytes));
        assert_eq!(server.send(request).await.status, status, "{bytes}");
    }
    server.get("/health").await.expect(200);
}

#[tokio::test]
async fn a_head_of_nearly_64_kib_is_accepted_by_default() {
    let server = Server::start().await;
    for (bytes, status) in [(60_000, 200), (65_537, 431)] {
        let request = server
            .request(Method::GET, "/health")
            .header("x-long", "a".repeat(bytes));
        assert_eq!(server.send(request).await.status, status, "{bytes}");
    }
}

#[tokio::test]
async fn one_header_field_too_many_is_431() {
    let server = Server::start_with(&patient("header_fields_max = 16")).await;
    for (fields, status) in [(16, 200), (17, 431), (400, 431)] {
        let others = "X-Other: a\r\n".repeat(fields - 1);
        let head = format!("GET /health HTTP/1.1\r\nHost: localhost\r\n{others}\r\n");
        assert_eq!(answer(&server, &head).await.status, status, "{fields}");

        // The client itself sends one: `accept`.
        let mut request = server.request(Method::GET, "/health");
        for number in 1..fields {
            request = request.header(format!("x-{number}"), "a");
        }
        assert_eq!(server.send(request).await.status, status, "{fields}");
    }
}

#[tokio::test]
async fn a_target_one_byte_over_the_limit_is_414() {
    for (lines, bytes_max) in [("uri_bytes_max = 1024", 1_024), ("", 8_192)] {
        let server = Server::start_with(&patient(lines)).await;
        for (bytes, status) in [(bytes_max, 200), (bytes_max + 1, 414)] {
            let path = format!("/health?{}", "a".repeat(bytes - "/health?".len()));
            let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
            let over_http1 = answer(&server, &head).await;
            assert_eq!(over_http1.status, status, "{bytes}: {}", over_http1.head);
            let over_http2 = server.send(server.request(Method::GET, &path)).await;
            assert_eq!(over_http2.status, status, "{bytes}");
            assert_eq!(over_http1.body, over_http2.body);
            if status == 414 {
                assert!(over_http2.error().contains(&bytes_max.to_string()));
            }
        }
    }
}

async fn answer(server: &Server, head: &str) -> Http1Answer {
    let mut stream = tls(server, ORDINARY, HTTP1).await.unwrap();
    // The server may respond before all of it has arrived.
    let _ = stream.write_all(head.as_bytes()).await;
    read_answer(&mut stream).await.unwrap()
}
