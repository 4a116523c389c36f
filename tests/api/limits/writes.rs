//! Clients that ask and take no answer.

use keywright_harness::Server;
use serde_json::json;
use tokio::io::AsyncWriteExt;

use super::{
    http2::{DATA, HEADERS, get, hello_without_window, kinds},
    patient,
    raw::{HTTP1, HTTP2, ORDINARY, OTHER, read_to_close, tls, until_answered},
};
use crate::given;

#[tokio::test]
async fn a_client_that_reads_nothing_is_given_up() {
    let lines = "write_seconds_max = 1\nconnections_per_address_max = 1";
    let server = Server::start_with(&patient(lines)).await;
    let large = json!({"text": "x".repeat(60_000)});
    for _ in 0..VERSIONS {
        given::set(&server, "/large", "json", large.clone()).await;
    }
    let mut stream = tls(&server, OTHER, HTTP1).await.unwrap();
    let request = format!(
        "GET /api/v1/data?name=/large HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\r\n",
        server.token()
    );
    for _ in 0..REQUESTS {
        stream.write_all(request.as_bytes()).await.unwrap();
    }
    stream.flush().await.unwrap();
    // Its place is free again, though it has not closed the connection.
    until_answered(&server, OTHER).await;
    let received = read_to_close(&mut stream).await;
    assert!(received.len() < REQUESTS * VERSIONS * 60_000);
}

#[tokio::test]
async fn a_client_that_lets_no_body_be_sent_is_given_up() {
    let server = Server::start_with(&patient("write_seconds_max = 1")).await;
    let mut stream = tls(&server, ORDINARY, HTTP2).await.unwrap();
    let request = [hello_without_window(), get("/info", 1)].concat();
    stream.write_all(&request).await.unwrap();
    let kinds = kinds(&read_to_close(&mut stream).await);
    assert!(
        kinds.contains(&HEADERS) && !kinds.contains(&DATA),
        "{kinds:?}"
    );
}

/// How much is asked for: far more than the kernel takes for both sides.
const VERSIONS: usize = 10;
const REQUESTS: usize = 40;
