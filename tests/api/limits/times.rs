//! Timeouts for handshakes, heads, bodies and idle connections. Each test sets one timeout to a second and all others
//! to an hour. Steps that a client must complete within the second are repeated until they are in time, and writes may
//! fail as the connection may be closed by then.

use std::time::Duration;

use keywright_harness::Server;
use tokio::{
    io::{AsyncWriteExt, split},
    time::sleep,
};

use super::{
    http2::{DATA, HEADERS, PING, PREFACE, frame, get, hello, read_until},
    patient,
    raw::{
        HEALTH, HTTP1, HTTP2, ORDINARY, drip_to_close, read_answer, read_to_close, tcp, tls,
        until_answered, until_in_time,
    },
};

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
    until_answered(&server, ORDINARY).await;
}

#[tokio::test]
async fn a_slow_head_of_a_later_request_closes_the_connection() {
    let server = Server::start_with(&patient("header_seconds_max = 1")).await;
    let mut stream = until_answered(&server, ORDINARY).await;
    let _ = stream.write_all(&HEALTH[..10]).await;
    assert!(drip_to_close(stream, b"a").await.is_empty());
}

#[tokio::test]
async fn an_idle_connection_is_closed() {
    let server = Server::start_with(&patient("idle_seconds_max = 1")).await;
    let mut stream = until_answered(&server, ORDINARY).await;
    assert!(read_to_close(&mut stream).await.is_empty());
    for (first, drip) in [
        (Vec::new(), &b""[..]),
        (Vec::new(), &ping()),
        (unfinished_headers(3), &[0]),
    ] {
        let asked = async || {
            let mut stream = tls(&server, ORDINARY, HTTP2).await?;
            let request = [hello(), get("/health", 1)].concat();
            stream.write_all(&request).await?;
            read_until(&mut stream, DATA, 1).await?;
            Ok(stream)
        };
        let mut stream = until_in_time(asked).await;
        let _ = stream.write_all(&first).await;
        drip_to_close(stream, drip).await;
    }
}

#[tokio::test]
async fn an_http2_client_without_a_ping_response_is_disconnected() {
    let lines = "ping_interval_seconds = 1\nping_seconds_max = 1";
    let server = Server::start_with(&patient(lines)).await;
    let asked = async || {
        let mut stream = tls(&server, ORDINARY, HTTP2).await?;
        stream.write_all(&hello()).await?;
        read_until(&mut stream, PING, 0).await?;
        Ok(stream)
    };
    let mut stream = until_in_time(asked).await;
    read_to_close(&mut stream).await;
}

#[tokio::test]
async fn an_old_connection_is_closed_between_two_requests() {
    let server = Server::start_with(&patient("connection_seconds_max = 1")).await;
    let mut stream = until_answered(&server, ORDINARY).await;
    while let Ok(()) = stream.write_all(HEALTH).await {
        // The last response announces the closure, or the connection closes after one that did not.
        match read_answer(&mut stream).await {
            Ok(answer) => assert_eq!(answer.status, 200),
            Err(_) => break,
        }
    }
    until_answered(&server, ORDINARY).await;
}

#[tokio::test]
async fn an_old_connection_closes_without_the_client_acknowledging() {
    let server = Server::start_with(&patient("connection_seconds_max = 1")).await;
    let asked = async || {
        let mut stream = tls(&server, ORDINARY, HTTP2).await?;
        let request = [hello(), get("/health", 1)].concat();
        stream.write_all(&request).await?;
        read_until(&mut stream, DATA, 1).await?;
        Ok(stream)
    };
    let (mut incoming, mut outgoing) = split(until_in_time(asked).await);
    let asking = async {
        for id in (3..).step_by(2) {
            let request = get("/health", id);
            if outgoing.write_all(&request).await.is_err() || outgoing.flush().await.is_err() {
                break;
            }
            sleep(Duration::from_millis(100)).await;
        }
        // The reading half notices when the server has closed the connection.
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = asking => unreachable!("it has no end"),
        _ = read_to_close(&mut incoming) => {}
    }
}

#[tokio::test]
async fn a_body_that_takes_too_long_is_408() {
    let server = Server::start_with(&patient("body_seconds_max = 1")).await;
    for framing in ["Content-Length: 100000", "Transfer-Encoding: chunked"] {
        let mut stream = tls(&server, ORDINARY, HTTP1).await.unwrap();
        let head = format!(
            "PUT /api/v1/data HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/json\r\n{framing}\r\n\r\n",
            server.token()
        );
        let _ = stream.write_all(head.as_bytes()).await;
        let drip = if framing.starts_with('C') {
            "{"
        } else {
            "1\r\n{\r\n"
        };
        let received = drip_to_close(stream, drip.as_bytes()).await;
        let received = String::from_utf8(received).unwrap();
        assert!(received.starts_with("HTTP/1.1 408 "), "{received}");
        assert!(received.contains("{\"error\":"), "{received}");
    }
}

fn ping() -> Vec<u8> {
    frame(PING, 0, 0, &[0; 8])
}

/// A frame header that announces a head of 16 KiB, none of it sent yet.
fn unfinished_headers(stream: u32) -> Vec<u8> {
    let mut whole = frame(HEADERS, 5, stream, &[0; 16_000]);
    whole.truncate(9);
    whole
}
