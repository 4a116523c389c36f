//! Limits on connections, on simultaneous requests, and on the requests of one actor per second.

use keywright_harness::{Server, until};
use reqwest::{Method, header};
use tokio::{io::AsyncWriteExt, net::TcpStream, task::JoinSet};
use tokio_rustls::client::TlsStream;

use super::{
    HTTP1, HTTP2, ORDINARY, OTHER, connected, get_health,
    http2::{RST_STREAM, form_without_body, hello, read_until},
    patient, read_response, read_to_close, tcp, tls, until_responded,
};
use crate::given;

#[tokio::test]
async fn connections_per_address_are_limited() {
    let server = Server::start_with(&patient("connections_per_address_max = 2")).await;
    let silent = tcp(&server, OTHER).await.unwrap();
    let mut open = connected(&server, OTHER).await;

    assert!(tls(&server, OTHER, HTTP1).await.is_err());
    let mut refused = tcp(&server, OTHER).await.unwrap();
    assert!(read_to_close(&mut refused).await.is_empty());

    server.get("/health").await.expect(200);
    assert_eq!(get_health(&mut open).await.unwrap(), 200);
    drop(silent);
    until_responded(&server, OTHER).await;
}

#[tokio::test]
async fn the_limit_per_address_defaults_to_a_quarter_of_the_total() {
    let server = Server::start_with(&patient("connections_max = 8")).await;
    let mut open = Vec::new();
    for _ in 0..2 {
        open.push(connected(&server, OTHER).await);
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
        idle.push(connected(&server, OTHER).await);
    }
    for _ in 0..3 {
        until_responded(&server, ORDINARY).await;
    }
    assert!(server.log().contains("reached the connection limit"));
}

#[tokio::test]
async fn silent_connections_are_closed_when_the_limit_is_reached() {
    let lines = "connections_max = 2\nconnections_per_address_max = 2";
    let server = Server::start_with(&patient(lines)).await;
    let mut without_request = tls(&server, OTHER, HTTP1).await.unwrap();
    let mut without_handshake = tcp(&server, OTHER).await.unwrap();
    let _other = until_responded(&server, ORDINARY).await;
    read_to_close(&mut without_request).await;
    read_to_close(&mut without_handshake).await;
}

#[tokio::test]
async fn connections_beyond_the_limit_wait() {
    let lines = "connections_max = 3\nconnections_per_address_max = 3\nhandshake_seconds_max = 1";
    let server = Server::start_with(&patient(lines)).await;
    let mut silent = Vec::new();
    for _ in 0..6 {
        silent.push(tcp(&server, OTHER).await.unwrap());
    }
    // The attempt is repeated because a connected client must also send its request in time.
    until_responded(&server, ORDINARY).await;
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
    let requests = [hello(), requests].concat();
    stream.write_all(&requests).await.unwrap();
    read_until(&mut stream, RST_STREAM, 5).await.unwrap();
}

// Limits on simultaneous requests, and on the requests of one actor per second.

#[tokio::test]
async fn requests_beyond_the_limit_are_503_with_retry_after() {
    let server = Server::start_with(&patient("requests_max = 2\nrequests_per_actor_max = 2")).await;
    let mut first = request_in_progress(&server).await;
    let mut second = request_in_progress(&server).await;

    let other = server.as_client("other").await;
    let refused = other.get("/version").await.expect(503);
    assert_eq!(refused.header("retry-after"), Some("1"), "{refused:?}");
    refused.error();
    server.get("/health").await.expect(200);
    server.get("/info").await.expect(200);
    let stranger = server.request(Method::GET, "/version");
    server.send(stranger).await.expect(401);

    for stream in [&mut first, &mut second] {
        stream.write_all(BODY.as_bytes()).await.unwrap();
        assert_eq!(read_response(stream).await.unwrap().status, 200);
    }
    until_free(&server).await;
}

#[tokio::test]
async fn an_actor_over_its_request_limit_is_429_and_others_succeed() {
    for lines in [
        "requests_max = 8",
        "requests_max = 3\nrequests_per_actor_max = 2",
    ] {
        let server = Server::start_with(&patient(lines).watched()).await;
        let other = server.as_client("other").await;
        let mut first = request_in_progress(&server).await;
        let _second = request_in_progress(&server).await;

        let refused = server.get("/version").await.expect(429);
        assert_eq!(refused.header("retry-after"), Some("1"), "{refused:?}");
        refused.error();
        other.get("/version").await.expect(200);
        let of_actor = [("reason", "actor_requests")];
        let counted = server.scrape().await.sum(REFUSED, &of_actor);
        assert_eq!(counted, Some(1.0));
        assert_eq!(server.scrape().await.sum(REFUSED, &[]), Some(1.0));

        first.write_all(BODY.as_bytes()).await.unwrap();
        assert_eq!(read_response(&mut first).await.unwrap().status, 200);
        until_free(&server).await;
    }
}

#[tokio::test]
async fn busy_actors_leave_slots_to_actors_with_few_requests() {
    let server = Server::start_with(&patient("requests_max = 16")).await;
    let mut in_progress = Vec::new();
    for (actor, count) in [("a", 4), ("b", 4), ("c", 4), ("d", 2)] {
        let actor = server.as_client(actor).await;
        for _ in 0..count {
            in_progress.push(request_in_progress_of(&server, actor.token()).await);
        }
    }
    let busy = server.as_client("d").await;
    busy.get("/version").await.expect(429);
    let other = server.as_client("other").await;
    let _one = request_in_progress_of(&server, other.token()).await;
    other.get("/version").await.expect(429);
    server.get("/version").await.expect(200);
}

#[tokio::test]
async fn an_abandoned_request_releases_its_slot() {
    let server = Server::start_with(&patient("requests_max = 1")).await;
    for _ in 0..3 {
        drop(request_in_progress(&server).await);
        until_free(&server).await;
    }
    server.get("/version").await.expect(200);
}

#[tokio::test]
async fn an_actor_over_its_rate_is_429_and_others_succeed() {
    let server = Server::start_with(&patient("requests_per_second_max = 1")).await;
    let user_token = given::user_token(&server).await;
    let mut calls = JoinSet::new();
    for _ in 0..100 {
        let request = server.authorized(Method::GET, "/version");
        calls.spawn(async move {
            let response = request.send().await.unwrap();
            let retry_after = response.headers().get(header::RETRY_AFTER).cloned();
            (response.status().as_u16(), retry_after)
        });
    }
    let user = server.request(Method::GET, "/version");
    server.send(user.bearer_auth(user_token)).await.expect(200);
    server.get("/health").await.expect(200);
    let responses = calls.join_all().await;
    let (refused, responded): (Vec<_>, Vec<_>) = responses
        .into_iter()
        .partition(|(status, _)| *status == 429);
    assert!(!refused.is_empty() && !responded.is_empty());
    assert!(responded.iter().all(|(status, _)| *status == 200));
    for (_, retry_after) in refused {
        assert_eq!(retry_after.unwrap(), "1");
    }
}

#[tokio::test]
async fn request_rates_are_unlimited_by_default() {
    let server = Server::start().await;
    for _ in 0..300 {
        server.get("/version").await.expect(200);
    }
}

/// Repeats a request until a slot is free.
async fn until_free(server: &Server) {
    let is_free = async || ![429, 503].contains(&server.get("/version").await.status);
    until("free slot", is_free).await;
}

/// Starts a request. Returns its connection once the server has requested the body.
async fn request_in_progress(server: &Server) -> TlsStream<TcpStream> {
    request_in_progress_of(server, server.token()).await
}

async fn request_in_progress_of(server: &Server, token: &str) -> TlsStream<TcpStream> {
    let mut stream = tls(server, OTHER, HTTP1).await.unwrap();
    let head = format!(
        "PUT /api/v1/data HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\nExpect: 100-continue\r\n\r\n",
        token,
        BODY.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    assert_eq!(read_response(&mut stream).await.unwrap().status, 100);
    stream
}

const REFUSED: &str = "keywright_http_requests_refused_total";

const BODY: &str = r#"{"name": "/a", "type": "value", "value": "v"}"#;
