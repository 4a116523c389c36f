//! Timeouts, and shutdown despite silent clients.

use std::{net::Ipv4Addr, time::Duration};

use keywright_harness::{Options, Server, Text, until};
use reqwest::Method;
use serde_json::json;
use tokio::{
    io::{AsyncWrite, AsyncWriteExt, split},
    net::TcpStream,
    time::sleep,
};
use tokio_rustls::client::TlsStream;

use super::{
    HEALTH, HTTP1, HTTP2, ORDINARY, OTHER, connected, drip_to_close,
    http2::{
        DATA, HEADERS, PING, PREFACE, authorized_get, frame, get, hello, hello_with_window, kinds,
        read_until, unfinished_headers, window_update,
    },
    patient, put_head, read_response, read_to_close, tcp, tls, until_in_time, until_responded,
};
use crate::audit::events;

// Timeouts for handshakes, heads, bodies and idle connections. Each test sets one timeout to a second and all others
// to an hour. If the client is too slow to complete its steps within that second, the test repeats them. Writes may fail
// because the server may already have closed the connection.

#[tokio::test]
async fn a_slow_handshake_is_aborted() {
    let server = Server::start_with(&patient("handshake_seconds_max = 1")).await;
    let mut silent = tcp(&server, ORDINARY).await.unwrap();
    let mut slow = tcp(&server, ORDINARY).await.unwrap();
    // The head of a TLS record of 16 KiB, which arrives byte by byte.
    slow.write_all(&[22, 3, 1, 64, 0]).await.unwrap();
    let (of_silent, of_slow) = tokio::join!(read_to_close(&mut silent), drip_to_close(slow, &[1]));
    assert_eq!((of_silent.len(), of_slow.len()), (0, 0));
    server.get("/health").await.expect(200);
}

#[tokio::test]
async fn a_client_without_a_complete_first_request_is_closed() {
    let server = Server::start_with(&patient("header_seconds_max = 1")).await;
    for (protocol, first, drip) in [
        (HTTP1, Vec::new(), &b""[..]),
        (HTTP1, b"GET /health HTTP/1.1\r\nX-Slow: ".to_vec(), b"a"),
        (HTTP2, Vec::new(), b""),
        (HTTP2, PREFACE[..8].to_vec(), b""),
        (HTTP2, hello(), b""),
        (HTTP2, hello(), &ping()),
        (HTTP2, [hello(), unfinished_headers(1)].concat(), &[0]),
    ] {
        let mut stream = tls(&server, ORDINARY, protocol).await.unwrap();
        let _ = stream.write_all(&first).await;
        let received = drip_to_close(stream, drip).await;
        assert!(!received.starts_with(b"HTTP/1.1 200"), "{protocol}");
    }
    until_responded(&server, ORDINARY).await;
}

#[tokio::test]
async fn a_slow_head_of_a_later_request_closes_the_connection() {
    let server = Server::start_with(&patient("header_seconds_max = 1")).await;
    let mut stream = until_responded(&server, ORDINARY).await;
    let _ = stream.write_all(&HEALTH[..10]).await;
    assert!(drip_to_close(stream, b"a").await.is_empty());
}

#[tokio::test]
async fn an_idle_connection_is_closed() {
    let server = Server::start_with(&patient("idle_seconds_max = 1")).await;
    let mut stream = until_responded(&server, ORDINARY).await;
    assert!(read_to_close(&mut stream).await.is_empty());
    for (first, drip) in [
        (Vec::new(), &b""[..]),
        (Vec::new(), &ping()),
        (unfinished_headers(3), &[0]),
    ] {
        let mut stream = until_responded_over_http2(&server, ORDINARY).await;
        let _ = stream.write_all(&first).await;
        drip_to_close(stream, drip).await;
    }
}

#[tokio::test]
async fn an_http2_client_without_a_ping_response_is_disconnected() {
    let lines = "ping_interval_seconds = 1\nping_seconds_max = 1";
    let server = Server::start_with(&patient(lines)).await;
    let attempt = async || {
        let mut stream = tls(&server, ORDINARY, HTTP2).await?;
        stream.write_all(&hello()).await?;
        read_until(&mut stream, PING, 0).await?;
        Ok(stream)
    };
    let mut stream = until_in_time(attempt).await;
    read_to_close(&mut stream).await;
}

#[tokio::test]
async fn an_old_connection_is_closed_between_two_requests() {
    let server = Server::start_with(&patient("connection_seconds_max = 1")).await;
    let mut stream = until_responded(&server, ORDINARY).await;
    while let Ok(()) = stream.write_all(HEALTH).await {
        // The last response may announce the closure. Otherwise, the connection closes without an announcement.
        match read_response(&mut stream).await {
            Ok(response) => assert_eq!(response.status, 200),
            Err(_) => break,
        }
        sleep(Duration::from_millis(2)).await;
    }
    until_responded(&server, ORDINARY).await;
}

#[tokio::test]
async fn an_old_connection_closes_even_if_the_client_keeps_sending() {
    let server = Server::start_with(&patient("connection_seconds_max = 1")).await;
    let stream = until_responded_over_http2(&server, ORDINARY).await;
    let (mut incoming, mut outgoing) = split(stream);
    tokio::select! {
        () = keep_sending(&mut outgoing, 3, |id| get("/health", id)) => {}
        _ = read_to_close(&mut incoming) => {}
    }
}

/// Like [`until_responded`], over HTTP/2.
async fn until_responded_over_http2(server: &Server, source: Ipv4Addr) -> TlsStream<TcpStream> {
    let attempt = async || {
        let mut stream = tls(server, source, HTTP2).await?;
        let request = [hello(), get("/health", 1)].concat();
        stream.write_all(&request).await?;
        read_until(&mut stream, DATA, 1).await?;
        Ok(stream)
    };
    until_in_time(attempt).await
}

/// Sends a request every 100 ms, and never returns: the reading half detects when the server has closed the connection.
async fn keep_sending(
    outgoing: &mut (impl AsyncWrite + Unpin),
    first_id: u32,
    request: impl Fn(u32) -> Vec<u8>,
) {
    for id in (first_id..).step_by(2) {
        let request = request(id);
        if outgoing.write_all(&request).await.is_err() || outgoing.flush().await.is_err() {
            break;
        }
        sleep(Duration::from_millis(100)).await;
    }
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn a_body_that_takes_too_long_is_408() {
    let server = Server::start_with(&patient("body_seconds_max = 1")).await;
    for (framing, drip) in [
        ("Content-Length: 100000", "{"),
        ("Transfer-Encoding: chunked", "1\r\n{\r\n"),
    ] {
        let mut stream = tls(&server, ORDINARY, HTTP1).await.unwrap();
        let head = put_head(&server, framing);
        let _ = stream.write_all(head.as_bytes()).await;
        let received = drip_to_close(stream, drip.as_bytes()).await;
        let received = String::from_utf8(received).unwrap();
        assert!(received.starts_with("HTTP/1.1 408 "), "{received}");
        received.assert_contains("{\"error\":");
    }
}

fn ping() -> Vec<u8> {
    frame(PING, 0, 0, &[0; 8])
}

// Clients that send requests and read no response.

#[tokio::test]
async fn a_client_that_reads_nothing_is_disconnected() {
    let lines = "write_seconds_max = 1\nconnections_per_address_max = 1";
    let server = Server::start_with(&patient(lines)).await;
    let large = json!({"text": "x".repeat(60_000)});
    for _ in 0..VERSIONS {
        server.stored("/large", "json", large.clone()).await;
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
    // The client's slot is free again, although the client has not closed the connection.
    until_responded(&server, OTHER).await;
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
        let is_free = async || server.get("/version").await.status != 429;
        until("free slot", is_free).await;
    }
}

#[tokio::test]
async fn a_client_ignoring_one_response_of_many_is_disconnected() {
    let server = Server::start_with(&patient("write_seconds_max = 1")).await;
    let stream = tls(&server, ORDINARY, HTTP2).await.unwrap();
    let (mut incoming, mut outgoing) = split(stream);
    let taken = |id| [get("/info", id), window_update(10_000, id)].concat();
    // The client requests the ignored response and one that it reads together, so that it reads one even on a busy machine.
    let first = [hello_with_window(0), get("/info", 1), taken(3)].concat();
    outgoing.write_all(&first).await.unwrap();
    tokio::select! {
        () = keep_sending(&mut outgoing, 5, taken) => {}
        received = read_to_close(&mut incoming) => assert!(kinds(&received).contains(&DATA)),
    }
}

/// The number of versions to read: far more than the kernel buffers for both sides.
const VERSIONS: usize = 10;
const REQUESTS: usize = 40;

// Clients can't prevent or delay shutdown.

#[tokio::test]
async fn silent_clients_do_not_prevent_shutdown() {
    let server = Server::start_with(&patient("shutdown_seconds_max = 3600")).await;
    let mut open = Vec::new();
    for first in [&b""[..], &hello(), &hello()[..8]] {
        let mut stream = tls(&server, OTHER, HTTP2).await.unwrap();
        stream.write_all(first).await.unwrap();
        open.push(stream);
    }
    let finished = until_responded_over_http2(&server, OTHER).await;
    let idle = connected(&server, OTHER).await;
    let mut begun = tls(&server, OTHER, HTTP1).await.unwrap();
    begun.write_all(b"GET /hea").await.unwrap();
    let silent = tcp(&server, OTHER).await.unwrap();

    server.stop().await;
    drop((open, finished, idle, begun, silent));
}

#[tokio::test]
async fn requests_cut_off_at_shutdown_leave_only_audit_events() {
    let options = patient("shutdown_seconds_max = 1").watched();
    let options = options.hostile("deadline_ms = 60000", "generate = \"loop\"");
    let server = Server::start_with(&options).await;
    let body = |name| json!({"name": name, "type": "hostile", "parameters": {}}).to_string();
    let over_http2 = server.authorized(Method::POST, "/api/v1/data");
    let over_http2 = tokio::spawn(over_http2.body(body("/cut/2")).send());
    let mut over_http1 = tls(&server, OTHER, HTTP1).await.unwrap();
    let body = body("/cut/1");
    let head = put_head(&server, &format!("Content-Length: {}", body.len()));
    let request = head.replace("PUT", "POST") + &body;
    over_http1.write_all(request.as_bytes()).await.unwrap();
    server
        .scrape_until(|scrape| {
            let lane = [("lane", "generate")];
            let busy = scrape.sum("keywright_plugin_lane_threads_busy", &lane);
            let queued = scrape.sum("keywright_plugin_lane_queue_length", &lane);
            busy.unwrap_or_default() + queued.unwrap_or_default() >= 2.0
        })
        .await;

    let directory = server.stop().await;
    assert!(over_http2.await.unwrap().is_err());
    let restarted = Server::start_in(directory, &Options::default()).await;
    let mut cut = events(&restarted);
    cut.retain(|event| event["status"] == 499);
    let names = cut.iter().map(|event| event["resource_name"].as_str());
    let mut names: Vec<_> = names.flatten().collect();
    names.sort_unstable();
    assert_eq!(names, ["/cut/1", "/cut/2"]);
    for name in names {
        let path = format!("/api/v1/data?name={name}");
        restarted.get(&path).await.expect(404);
    }
}
