//! Protocols of a connection.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends when a client can't be made"
)]

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    time::Duration,
};

use keywright_harness::{Server, key_file};
use reqwest::{Certificate, Client, ClientBuilder, Version, tls};
use serde_json::json;

#[tokio::test]
async fn both_versions_of_http_are_supported() {
    let server = Server::start().await;
    for (client, version) in [
        (client(ClientBuilder::http1_only), Version::HTTP_11),
        (client(|builder| builder), Version::HTTP_2),
    ] {
        let url = format!("{}/api/v1/data", server.base_url());
        for (body, status) in [
            (
                json!({"name": "/a", "type": "value", "value": "v"}).to_string(),
                200,
            ),
            (" ".repeat(3 * 1024 * 1024), 413),
            (String::new(), 400),
        ] {
            let response = client
                .put(&url)
                .bearer_auth(server.token())
                .header("content-type", "application/json")
                .body(body)
                .send()
                .await
                .unwrap();
            assert_eq!(response.version(), version);
            assert_eq!(response.status().as_u16(), status, "{version:?}");
            let body = response.text().await.unwrap();
            assert!(body.starts_with('{') && body.ends_with('}'), "{body}");
        }
    }
}

#[tokio::test]
async fn tls_1_2_and_1_3_are_supported() {
    let server = Server::start().await;
    for version in [tls::Version::TLS_1_2, tls::Version::TLS_1_3] {
        let client = client(|builder| builder.tls_version_min(version).tls_version_max(version));
        let url = format!("{}/health", server.base_url());
        assert_eq!(
            client.get(&url).send().await.unwrap().status().as_u16(),
            200,
            "{version:?}"
        );
    }
}

#[tokio::test]
async fn plaintext_requests_get_no_response() {
    let server = Server::start().await;
    let address = server.base_url().trim_start_matches("https://").to_owned();
    let answer = tokio::task::spawn_blocking(move || {
        let mut connection = TcpStream::connect(&address).unwrap();
        connection
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        connection
            .write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            .unwrap();
        let mut answer = Vec::new();
        // The server may reset the connection instead of closing it.
        let _ = connection.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    })
    .await
    .unwrap();
    assert!(
        !answer.contains("HTTP/") && !answer.contains("UP"),
        "{answer}"
    );
    server.get("/health").await.expect(200);
}

fn client(settings: impl FnOnce(ClientBuilder) -> ClientBuilder) -> Client {
    let authority = fs::read(key_file("ca.pem")).unwrap();
    settings(Client::builder())
        .tls_certs_only([Certificate::from_pem(&authority).unwrap()])
        .no_proxy()
        .build()
        .unwrap()
}
