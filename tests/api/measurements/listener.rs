//! The management listener.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends when what it needs is not there"
)]

use std::{
    io::{ErrorKind, Read, Write},
    net::{TcpListener, TcpStream},
};

use keywright_harness::{Options, Server};
use reqwest::Method;
use serde_json::json;

/// The maximum number of connections of the management listener.
const CONNECTIONS_MAX: usize = 64;

/// The largest head of a request, in bytes.
const HEADER_BYTES_MAX: usize = 16 * 1024;

async fn watched() -> Server {
    Server::start_with(&Options::default().watched()).await
}

fn connect(server: &Server) -> TcpStream {
    TcpStream::connect(server.management_url().trim_start_matches("http://")).unwrap()
}

/// Sends bytes and returns the response up to the end of the connection.
fn exchange(server: &Server, request: &str) -> String {
    let mut stream = connect(server);
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[tokio::test]
async fn health_needs_neither_tls_nor_authentication() {
    let server = watched().await;
    let answer = server.ask_management(Method::GET, "/health").await;
    assert_eq!(answer.expect(200).json(), json!({"status": "UP"}));
    let answer = server.ask_management(Method::HEAD, "/health").await;
    assert_eq!(answer.expect(200).body, "");
}

#[tokio::test]
async fn it_serves_the_text_format_of_prometheus() {
    let server = watched().await;
    let answer = server.ask_management(Method::GET, "/metrics").await;
    assert_eq!(
        answer.expect(200).header("content-type"),
        Some("text/plain; version=0.0.4; charset=utf-8")
    );
}

#[tokio::test]
async fn management_and_api_listeners_share_no_paths() {
    let server = watched().await;
    for (method, path) in [
        (Method::GET, "/"),
        (Method::GET, "/info"),
        (Method::GET, "/api/v1/data?path=/"),
        (Method::GET, "/identity/token_keys"),
        (Method::POST, "/management"),
        (Method::POST, "/health"),
        (Method::DELETE, "/metrics"),
    ] {
        let answer = server.ask_management(method.clone(), path).await;
        assert_eq!(answer.status, 404, "{method} {path}");
    }
    server.get("/metrics").await.expect(404);
}

#[tokio::test]
async fn without_the_setting_there_is_no_listener() {
    let server = Server::start().await;
    assert!(!server.log().contains("management.address"));
}

#[test]
fn start_fails_naming_the_setting_of_an_address_in_use() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let section = format!("[management]\nlisten = \"{address}\"");
    let refusal = Server::refusal(&Options::default().extra(&section));
    let reported = format!("listening on {address} (management.listen): Address already in use");
    assert!(refusal.contains(&reported), "{refusal}");
}

#[tokio::test]
async fn an_address_beyond_loopback_is_logged_as_a_warning() {
    let warning = "the management address is not a loopback address";
    let everywhere = Options::default().extra("[management]\nlisten = \"0.0.0.0:0\"");
    let server = Server::start_with(&everywhere).await;
    assert!(server.log().contains(warning));
    assert!(!watched().await.log().contains(warning));
}

#[tokio::test]
async fn a_connection_closes_after_its_response() {
    let server = watched().await;
    let request = "GET /health HTTP/1.1\r\nHost: a\r\n\r\n";
    let answer = exchange(&server, &request.repeat(2));
    assert_eq!(answer.matches("HTTP/1.1 200 OK").count(), 1, "{answer}");
}

#[tokio::test]
async fn a_head_over_16_kib_is_refused() {
    let server = watched().await;
    let request = |bytes: usize| {
        let begin = "GET /health HTTP/1.1\r\nHost: a\r\nX-Filler: ";
        let filler = "x".repeat(bytes - begin.len() - 4);
        format!("{begin}{filler}\r\n\r\n")
    };
    let fitting = exchange(&server, &request(HEADER_BYTES_MAX));
    assert!(fitting.starts_with("HTTP/1.1 200 OK"), "{fitting}");
    let large = exchange(&server, &request(HEADER_BYTES_MAX + 1));
    assert!(large.starts_with("HTTP/1.1 431 "), "{large}");
}

/// At the connection limit, a further connection displaces a slow one.
#[tokio::test]
async fn slow_clients_are_displaced_by_others() {
    let server = watched().await;
    let mut slow: Vec<TcpStream> = (0..CONNECTIONS_MAX)
        .map(|_| {
            let mut stream = connect(&server);
            stream.write_all(b"GET /hea").unwrap();
            stream
        })
        .collect();
    server
        .ask_management(Method::GET, "/health")
        .await
        .expect(200);
    let has_ended = |stream: &mut TcpStream| {
        stream.set_nonblocking(true).unwrap();
        let read = stream.read(&mut [0; 1024]);
        !read.is_err_and(|cause| cause.kind() == ErrorKind::WouldBlock)
    };
    assert!(slow.iter_mut().any(has_ended));
}

#[tokio::test]
async fn it_stops_with_the_server() {
    let server = watched().await;
    let address = server.management_url();
    let address = address.trim_start_matches("http://").to_owned();
    let stream = TcpStream::connect(&address).unwrap();
    server.stop().await;
    assert!(TcpStream::connect(&address).is_err());
    drop(stream);
}
