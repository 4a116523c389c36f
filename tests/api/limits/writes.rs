//! Clients that send requests and read no response.

use std::time::Duration;

use keywright_harness::Server;
use serde_json::json;
use tokio::{
    io::{AsyncWriteExt, split},
    time::{sleep, timeout},
};

use super::{
    http2::{
        DATA, HEADERS, authorized_get, get, hello_with_window, kinds, read_until, window_update,
    },
    patient,
    raw::{HTTP1, HTTP2, ORDINARY, OTHER, PATIENCE, read_to_close, tls, until_answered},
};
use crate::given;

#[tokio::test]
async fn a_client_that_reads_nothing_is_disconnected() {
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
        // On a busy machine the server may have closed the connection already.
        let _ = stream.write_all(request.as_bytes()).await;
    }
    let _ = stream.flush().await;
    // Its slot is free again, although it has not closed the connection.
    until_answered(&server, OTHER).await;
    let received = read_to_close(&mut stream).await;
    assert!(received.len() < REQUESTS * VERSIONS * 60_000);
}

#[tokio::test]
async fn a_client_that_never_reads_a_whole_body_is_disconnected() {
    let server = Server::start_with(&patient("write_seconds_max = 1")).await;
    for (window, is_begun) in [(0, false), (1, true)] {
        let mut stream = tls(&server, ORDINARY, HTTP2).await.unwrap();
        let request = [hello_with_window(window), get("/info", 1)].concat();
        stream.write_all(&request).await.unwrap();
        let kinds = kinds(&read_to_close(&mut stream).await);
        assert!(kinds.contains(&HEADERS), "{kinds:?}");
        assert_eq!(kinds.contains(&DATA), is_begun, "{kinds:?}");
    }
}

#[tokio::test]
async fn an_incompletely_read_response_keeps_its_slot() {
    let lines = "requests_max = 1\nrequests_per_actor_max = 1";
    let server = Server::start_with(&patient(lines)).await;
    for window in [0, 1] {
        let mut stream = tls(&server, OTHER, HTTP2).await.unwrap();
        let request = authorized_get("/version", server.token(), 1);
        let request = [hello_with_window(window), request].concat();
        stream.write_all(&request).await.unwrap();
        read_until(&mut stream, HEADERS, 1).await.unwrap();
        for _ in 0..10 {
            server.get("/version").await.expect(429);
        }
        stream.write_all(&window_update(1_000, 1)).await.unwrap();
        let free = async { while server.get("/version").await.status == 429 {} };
        timeout(PATIENCE, free).await.unwrap();
    }
}

#[tokio::test]
async fn a_client_ignoring_one_response_of_many_is_disconnected() {
    let server = Server::start_with(&patient("write_seconds_max = 1")).await;
    let stream = tls(&server, ORDINARY, HTTP2).await.unwrap();
    let (mut incoming, mut outgoing) = split(stream);
    let taken = |id| [get("/info", id), window_update(10_000, id)].concat();
    // The first response that it reads is requested with the ignored one, so that it arrives even on a busy machine.
    let first = [hello_with_window(0), get("/info", 1), taken(3)].concat();
    outgoing.write_all(&first).await.unwrap();
    let asking = async {
        for id in (5..).step_by(2) {
            let taken = taken(id);
            if outgoing.write_all(&taken).await.is_err() || outgoing.flush().await.is_err() {
                break;
            }
            sleep(Duration::from_millis(100)).await;
        }
        // The reading half notices when the server has closed the connection.
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = asking => unreachable!("it has no end"),
        received = read_to_close(&mut incoming) => assert!(kinds(&received).contains(&DATA)),
    }
}

/// The number of versions to read: far more than the kernel buffers for both sides.
const VERSIONS: usize = 10;
const REQUESTS: usize = 40;
