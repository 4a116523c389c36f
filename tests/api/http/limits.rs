//! How large a request body may be, whatever it holds.

use keywright_harness::{Options, Server};
use reqwest::Method;

#[tokio::test]
async fn a_request_body_of_one_mib_is_taken_and_one_byte_more_is_413() {
    let server = Server::start().await;
    expect_body_limit(&server, 1024 * 1024).await;
}

#[tokio::test]
async fn the_limit_of_request_bodies_is_a_setting() {
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
