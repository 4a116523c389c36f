//! Limits on the heads and bodies of requests.

use std::{
    convert::Infallible,
    fs,
    pin::Pin,
    task::{Context, Poll},
};

use http_body::{Body, Frame};
use keywright_harness::{Options, Server};
use reqwest::Method;
use tokio::{
    io::{AsyncWriteExt, split},
    net::TcpStream,
    time::{Duration, Instant, timeout},
};
use tokio_rustls::client::TlsStream;

use super::{
    HTTP1, HTTP2, Http1Response, ORDINARY, PATIENCE,
    http2::{
        DATA, END_STREAM, HEADERS, PING, RST_STREAM, form_to, frame, hello, read_frame, read_until,
    },
    patient, put_head, read_response, read_to_close, tls,
};

// Limits on the heads of requests.

#[tokio::test]
async fn unknown_methods_are_not_in_the_access_log() {
    let server = Server::start().await;
    let method = "M".repeat(10_000);
    let head = format!("{method} /health HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(response(&server, &head).await.status, 404);
    let log = server.whole_log().await;
    let lines = log.lines();
    let mut lines = lines.filter(|line| line.contains("keywright_api::access"));
    assert!(lines.clone().all(|line| line.len() < 1_000));
    assert!(lines.any(|line| line.contains(r#""http.method":"other""#)));
}

#[tokio::test]
async fn a_head_beyond_the_limit_is_431() {
    let server = Server::start_with(&patient("header_bytes_max = 8192")).await;
    let by_default = Server::start().await;
    for (server, bytes, status) in [
        (&server, 7_500, 200),
        (&server, 8_193, 431),
        (&by_default, 60_000, 200),
        (&by_default, 65_537, 431),
    ] {
        let request = server.request(Method::GET, "/health");
        let request = request.header("x-long", "a".repeat(bytes));
        assert_eq!(server.send(request).await.status, status, "{bytes}");
        server.get("/health").await.expect(200);
    }
}

#[tokio::test]
async fn one_header_field_too_many_is_431() {
    let server = Server::start_with(&patient("header_fields_max = 16")).await;
    for (fields, status) in [(16, 200), (17, 431), (400, 431)] {
        let others = "X-Other: a\r\n".repeat(fields - 1);
        let head = format!("GET /health HTTP/1.1\r\nHost: localhost\r\n{others}\r\n");
        let over_http1 = response(&server, &head).await;
        assert_eq!(over_http1.status, status, "{fields}");
        let is_explained = over_http1.body.contains("at most 16 header fields");
        assert_eq!(is_explained, fields == 17, "{}", over_http1.body);

        // The client itself adds one header field: `accept`.
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
            let over_http1 = response(&server, &head).await;
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

async fn response(server: &Server, head: &str) -> Http1Response {
    let mut stream = tls(server, ORDINARY, HTTP1).await.unwrap();
    // The server may respond before the whole head has arrived.
    let _ = stream.write_all(head.as_bytes()).await;
    read_response(&mut stream).await.unwrap()
}

// The size limit of request bodies.

#[tokio::test]
async fn a_body_over_one_mib_or_the_configured_limit_is_413() {
    for (settings, bytes_max) in [("", 1024 * 1024), ("request_bytes_max = 2048", 2048)] {
        let options = Options::default().server_settings(settings);
        let server = Server::start_with(&options).await;
        for (bytes, status) in [(bytes_max, 200), (bytes_max + 1, 413)] {
            let body = format!("{{{}}}", " ".repeat(bytes - 2));
            let request = server.authorized(Method::POST, "/api/v1/interpolate");
            let response = server.send(request.body(body)).await;
            assert_eq!(response.status, status, "{bytes} bytes: {response:?}");
        }
    }
}

#[tokio::test]
async fn a_large_body_without_a_token_is_401() {
    let server = Server::start().await;
    let request = server.request(Method::PUT, "/api/v1/data");
    let request = request.body(" ".repeat(2 * 1024 * 1024));
    let response = server.send(request).await;
    assert_eq!(response.expect(401).error(), "access_denied");
}

#[tokio::test]
async fn an_announced_body_of_10_gib_is_413_before_it_arrives() {
    let server = Server::start().await;
    let put = put_head(&server, &format!("Content-Length: {TEN_GIB}"));
    let post = put.replace("PUT", "POST");
    let interpolate = post.replace("data", "interpolate");
    for head in [put, post, interpolate] {
        let mut stream = tls(&server, ORDINARY, HTTP1).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        let response = read_response(&mut stream).await.unwrap();
        assert_eq!(response.status, 413, "{head}: {}", response.body);
        // The server does not wait for the rest.
        assert!(read_to_close(&mut stream).await.is_empty());
    }
    server.get("/health").await.expect(200);
}

#[tokio::test]
async fn an_endless_body_is_refused_without_buffering_it() {
    let server = Server::start().await;
    let before = memory_peak_kib(&server);
    let stream = tls(&server, ORDINARY, HTTP1).await.unwrap();
    let (mut incoming, mut outgoing) = split(stream);
    let head = put_head(&server, "Transfer-Encoding: chunked");
    outgoing.write_all(head.as_bytes()).await.unwrap();
    let without_end = async {
        let chunk = format!("10000\r\n{}\r\n", " ".repeat(0x1_0000));
        let mut bytes = 0_usize;
        while outgoing.write_all(chunk.as_bytes()).await.is_ok() {
            bytes += 0x1_0000;
        }
        bytes
    };
    let (sent, received) = tokio::join!(without_end, read_to_close(&mut incoming));
    let received = String::from_utf8_lossy(&received);
    // The connection closes while the client is still sending, so the response may be lost.
    assert!(
        received.is_empty() || received.starts_with("HTTP/1.1 413 "),
        "{received}"
    );
    assert!(sent < TAKEN_BYTES_MAX, "{sent}");

    let request = server.authorized(Method::PUT, "/api/v1/data");
    let request = request.body(reqwest::Body::wrap(Endless));
    server.send(request).await.expect(413);
    let grown = memory_peak_kib(&server) - before;
    assert!(grown < MEMORY_KIB_MAX, "{grown} KiB");
}

fn memory_peak_kib(server: &Server) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.process_id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.unwrap().trim().trim_end_matches(" kB");
    number.parse().unwrap()
}

struct Endless;

impl Body for Endless {
    type Data = &'static [u8];
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<&'static [u8]>, Infallible>>> {
        Poll::Ready(Some(Ok(Frame::data(&[b' '; 0x4000]))))
    }
}

const TEN_GIB: u64 = 10 * 1024 * 1024 * 1024;

/// The maximum number of bytes discarded beyond the limit, including the kernel's buffers of both sides.
const TAKEN_BYTES_MAX: usize = 64 * 1024 * 1024;

const MEMORY_KIB_MAX: u64 = 32 * 1024;

// Responses to requests whose bodies no handler reads: sent once the body is complete, too large or too slow.

#[tokio::test]
async fn an_early_response_over_http2_follows_a_body_within_the_limit() {
    let server = Server::start_with(&patient("request_bytes_max = 1024")).await;
    let mut stream = refused_request(&server, &[b' '; 1024]).await;
    let kinds = kinds_until_ping(&mut stream).await;
    assert!(!kinds.contains(&HEADERS), "{kinds:?}");

    let end = frame(DATA, END_STREAM, 1, &[]);
    stream.write_all(&end).await.unwrap();
    expect_frame(&mut stream, HEADERS).await;
    expect_frame(&mut stream, DATA).await;
    let kinds = kinds_until_ping(&mut stream).await;
    assert!(!kinds.contains(&RST_STREAM), "{kinds:?}");
}

#[tokio::test]
async fn early_http2_responses_do_not_wait_for_oversized_bodies() {
    let server = Server::start_with(&patient("request_bytes_max = 1024")).await;
    let mut stream = refused_request(&server, &[b' '; 1025]).await;
    expect_frame(&mut stream, HEADERS).await;
    expect_frame(&mut stream, RST_STREAM).await;
}

#[tokio::test]
async fn an_early_response_over_http2_does_not_wait_for_a_slow_body() {
    for (lines, least) in [("body_seconds_max = 1", 1), ("body_seconds_max = 3600", 5)] {
        let server = Server::start_with(&patient(lines)).await;
        let begun = Instant::now();
        let mut stream = refused_request(&server, b" ").await;
        expect_frame(&mut stream, HEADERS).await;
        assert!(begun.elapsed() >= Duration::from_secs(least));
        expect_frame(&mut stream, RST_STREAM).await;
    }
}

#[tokio::test]
async fn early_responses_do_not_wait_for_a_100_continue_body() {
    let server = Server::start_with(&patient("")).await;
    let mut stream = tls(&server, ORDINARY, HTTP1).await.unwrap();
    let head = "PUT /api/v1/data HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\
                Expect: 100-continue\r\n\r\n";
    let begun = Instant::now();
    stream.write_all(head.as_bytes()).await.unwrap();
    assert_eq!(read_response(&mut stream).await.unwrap().status, 401);
    assert!(begun.elapsed() < Duration::from_secs(5));
}

/// Sends a request over HTTP/2 without a token, and this part of its body.
async fn refused_request(server: &Server, body: &[u8]) -> TlsStream<TcpStream> {
    let mut stream = tls(server, ORDINARY, HTTP2).await.unwrap();
    let head = form_to("/api/v1/data", 1);
    let request = [hello(), head, frame(DATA, 0, 1, body)].concat();
    stream.write_all(&request).await.unwrap();
    stream
}

async fn expect_frame(stream: &mut TlsStream<TcpStream>, kind: u8) {
    let read = timeout(PATIENCE, read_until(stream, kind, 1)).await;
    read.expect("the server does not respond").unwrap();
}

/// Sends a ping, and returns the kinds of the frames that arrive before the response to it.
async fn kinds_until_ping(stream: &mut TlsStream<TcpStream>) -> Vec<u8> {
    stream.write_all(&frame(PING, 0, 0, &[0; 8])).await.unwrap();
    let mut kinds = Vec::new();
    loop {
        let frame = timeout(PATIENCE, read_frame(stream)).await;
        match frame.expect("the server does not respond").unwrap().kind {
            PING => return kinds,
            kind => kinds.push(kind),
        }
    }
}
