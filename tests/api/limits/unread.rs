//! Responses to requests whose bodies no handler reads: sent once the body is complete, too large or too slow.

use keywright_harness::Server;
use tokio::{
    io::AsyncWriteExt,
    net::TcpStream,
    time::{Duration, Instant, timeout},
};
use tokio_rustls::client::TlsStream;

use super::{
    http2::{
        DATA, END_STREAM, HEADERS, PING, RST_STREAM, form_to, frame, hello, read_frame, read_until,
    },
    patient,
    raw::{HTTP1, HTTP2, ORDINARY, PATIENCE, read_answer, tls},
};

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
    assert_eq!(read_answer(&mut stream).await.unwrap().status, 401);
    assert!(begun.elapsed() < Duration::from_secs(5));
}

/// A request over HTTP/2 without a token, and the part of its body that has been sent.
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
