//! Limits on connections.

use keywright_harness::Server;
use tokio::io::AsyncWriteExt;

use super::{
    http2::{RST_STREAM, form_without_body, hello, read_until},
    patient,
    raw::{HTTP1, HTTP2, ORDINARY, OTHER, ask, read_to_close, tcp, tls, until_answered},
};

#[tokio::test]
async fn connections_per_address_are_limited() {
    let server = Server::start_with(&patient("connections_per_address_max = 2")).await;
    let silent = tcp(&server, OTHER).await.unwrap();
    let mut kept = tls(&server, OTHER, HTTP1).await.unwrap();
    assert_eq!(ask(&mut kept).await.unwrap(), 200);

    assert!(tls(&server, OTHER, HTTP1).await.is_err());
    let mut refused = tcp(&server, OTHER).await.unwrap();
    assert!(read_to_close(&mut refused).await.is_empty());

    server.get("/health").await.expect(200);
    assert_eq!(ask(&mut kept).await.unwrap(), 200);
    drop(silent);
    until_answered(&server, OTHER).await;
}

#[tokio::test]
async fn the_limit_per_address_defaults_to_a_quarter() {
    let server = Server::start_with(&patient("connections_max = 8")).await;
    let mut kept = Vec::new();
    for _ in 0..2 {
        let mut stream = tls(&server, OTHER, HTTP1).await.unwrap();
        assert_eq!(ask(&mut stream).await.unwrap(), 200);
        kept.push(stream);
    }
    assert!(tls(&server, OTHER, HTTP1).await.is_err());
}

#[tokio::test]
async fn idle_connections_are_closed_when_the_limit_is_reached() {
    let lines = "connections_max = 4\nconnections_per_address_max = 4";
    let server = Server::start_with(&patient(lines)).await;
    let mut idle = Vec::new();
    // The ordinary client has the fourth connection.
    for _ in 0..3 {
        let mut stream = tls(&server, OTHER, HTTP1).await.unwrap();
        assert_eq!(ask(&mut stream).await.unwrap(), 200);
        idle.push(stream);
    }
    for _ in 0..3 {
        let mut stream = tls(&server, ORDINARY, HTTP1).await.unwrap();
        assert_eq!(ask(&mut stream).await.unwrap(), 200);
    }
    assert!(
        server
            .log()
            .contains("as many connections are open as may be")
    );
}

#[tokio::test]
async fn connections_beyond_the_limit_wait() {
    let lines = "connections_max = 3\nconnections_per_address_max = 3\nhandshake_seconds_max = 1";
    let server = Server::start_with(&patient(lines)).await;
    let mut silent = Vec::new();
    for _ in 0..6 {
        silent.push(tcp(&server, OTHER).await.unwrap());
    }
    // It must also be quick once it is connected.
    until_answered(&server, ORDINARY).await;
    for stream in &mut silent {
        assert!(read_to_close(stream).await.is_empty());
    }
}

#[tokio::test]
async fn requests_per_connection_are_limited() {
    let server = Server::start_with(&patient("streams_per_connection_max = 2")).await;
    let mut stream = tls(&server, ORDINARY, HTTP2).await.unwrap();
    // The server waits for the bodies of the first two; the third is refused by a frame that resets it (RFC 9113, 5.1.2).
    let requests = [1, 3, 5].map(form_without_body).concat();
    stream
        .write_all(&[hello(), requests].concat())
        .await
        .unwrap();
    read_until(&mut stream, RST_STREAM, 5).await.unwrap();
}
