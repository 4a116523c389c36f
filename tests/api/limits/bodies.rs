//! The size limit of request bodies.

use std::{
    convert::Infallible,
    fs,
    pin::Pin,
    task::{Context, Poll},
};

use http_body::{Body, Frame};
use keywright_harness::{Options, Server};
use reqwest::Method;
use tokio::io::{AsyncWriteExt, split};

use super::raw::{HTTP1, ORDINARY, read_answer, read_to_close, tls};

#[tokio::test]
async fn a_request_body_over_one_mib_is_413() {
    let server = Server::start().await;
    expect_body_limit(&server, 1024 * 1024).await;
}

#[tokio::test]
async fn the_body_limit_is_configurable() {
    let options = Options::default().server_settings("request_bytes_max = 2048");
    let server = Server::start_with(&options).await;
    expect_body_limit(&server, 2048).await;
}

#[tokio::test]
async fn a_body_far_past_the_limit_is_413_on_every_endpoint() {
    let server = Server::start().await;
    let body = format!("{{{}}}", " ".repeat(8 * 1024 * 1024));
    for (method, path) in [
        (Method::PUT, "/api/v1/data"),
        (Method::POST, "/api/v1/data"),
        (Method::POST, "/api/v1/regenerate"),
        (Method::POST, "/api/v1/interpolate"),
    ] {
        let request = server.authorized(method.clone(), path).body(body.clone());
        let answer = server.send(request).await;
        assert_eq!(answer.status, 413, "{method} {path}: {answer:?}");
        assert!(!answer.error().is_empty());
    }
    server.get("/health").await.expect(200);
}

#[tokio::test]
async fn a_large_body_without_a_token_is_401() {
    let server = Server::start().await;
    let request = server
        .request(Method::PUT, "/api/v1/data")
        .body(" ".repeat(2 * 1024 * 1024));
    assert_eq!(
        server.send(request).await.expect(401).error(),
        "access_denied"
    );
}

#[tokio::test]
async fn an_announced_body_of_10_gib_is_413_before_it_arrives() {
    let server = Server::start().await;
    for (method, path) in [
        ("PUT", "/api/v1/data"),
        ("POST", "/api/v1/data"),
        ("POST", "/api/v1/interpolate"),
    ] {
        let mut stream = tls(&server, ORDINARY, HTTP1).await.unwrap();
        let framing = format!("Content-Length: {TEN_GIB}");
        let head = head(&server, method, path, &framing);
        stream.write_all(head.as_bytes()).await.unwrap();
        let answer = read_answer(&mut stream).await.unwrap();
        assert_eq!(answer.status, 413, "{method} {path}: {}", answer.body);
        // The server does not wait for the rest.
        assert!(read_to_close(&mut stream).await.is_empty());
    }
    server.get("/health").await.expect(200);
}

#[tokio::test]
async fn an_endless_body_is_not_buffered_and_soon_refused() {
    let server = Server::start().await;
    let before = memory_peak_kib(&server);
    let stream = tls(&server, ORDINARY, HTTP1).await.unwrap();
    let (mut incoming, mut outgoing) = split(stream);
    let head = head(&server, "PUT", "/api/v1/data", "Transfer-Encoding: chunked");
    outgoing.write_all(head.as_bytes()).await.unwrap();
    let without_end = async {
        let chunk = format!("10000\r\n{}\r\n", " ".repeat(0x1_0000));
        let mut bytes = 0_usize;
        while outgoing.write_all(chunk.as_bytes()).await.is_ok() {
            bytes += 0x1_0000;
        }
        bytes
    };
    let (taken, received) = tokio::join!(without_end, read_to_close(&mut incoming));
    let received = String::from_utf8_lossy(&received);
    // The connection closes while the client is still sending, so the response may be lost.
    assert!(
        received.is_empty() || received.starts_with("HTTP/1.1 413 "),
        "{received}"
    );
    assert!(taken < TAKEN_BYTES_MAX, "{taken}");

    let request = server
        .authorized(Method::PUT, "/api/v1/data")
        .body(reqwest::Body::wrap(Endless));
    server.send(request).await.expect(413);
    let grown = memory_peak_kib(&server) - before;
    assert!(grown < MEMORY_KIB_MAX, "{grown} KiB");
}

fn head(server: &Server, method: &str, path: &str, framing: &str) -> String {
    format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\n{framing}\r\n\r\n",
        server.token()
    )
}

/// The peak memory of the server.
fn memory_peak_kib(server: &Server) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.process_id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.unwrap().trim().trim_end_matches(" kB");
    number.parse().unwrap()
}

/// An endless body.
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

/// Bytes discarded beyond the limit, and those in the kernel's buffers of both sides.
const TAKEN_BYTES_MAX: usize = 64 * 1024 * 1024;

const MEMORY_KIB_MAX: u64 = 32 * 1024;

async fn expect_body_limit(server: &Server, bytes_max: usize) {
    for (bytes, status) in [(bytes_max, 200), (bytes_max + 1, 413)] {
        let body = format!("{{{}}}", " ".repeat(bytes - 2));
        let request = server
            .authorized(Method::POST, "/api/v1/interpolate")
            .body(body);
        let answer = server.send(request).await;
        assert_eq!(answer.status, status, "{bytes} bytes: {answer:?}");
    }
}
