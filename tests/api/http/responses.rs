//! Common properties of responses, and the protocols of a connection.

use std::{
    io::{Read, Write},
    net::TcpStream,
    time::Duration,
};

use keywright_harness::{Server, Text};
use reqwest::Method;
use serde_json::json;

use crate::given;

// Common properties of responses: the media type, and the shape of errors.

const REQUESTS: &str = r#"
    200 PUT /api/v1/data {"name": "/b", "type": "value", "value": "v"}
    200 POST /api/v1/data {"name": "/c", "type": "password"}
    200 POST /api/v1/regenerate {"name": "/c"}
    200 POST /api/v1/interpolate {}
    422 PUT /api/v1/data {}
    404 GET /no/such/path
    200 GET /info
    200 GET /health
    200 GET /version
    200 GET /api/v1/data?name=/a
    200 GET /api/v1/data?path=
    200 GET /api/v1/data/ID
"#;

#[tokio::test]
async fn a_client_may_name_the_media_types_it_accepts() {
    let server = Server::reused().await;
    server.set_value("/a", "v").await;
    for accepted in [
        "application/json",
        "application/json, application/*+json",
        "*/*",
    ] {
        let request = server
            .authorized(Method::GET, "/api/v1/data?name=/a")
            .header("accept", accepted);
        server.send(request).await.expect(200);
    }
}

#[tokio::test]
async fn every_body_is_json_in_utf_8() {
    let server = Server::reused().await;
    let version = server.stored("/a", "json", json!({"k": "ä"})).await;
    let requests = given::requests(&REQUESTS.replace("ID", &given::id(&version)));
    let mut responses = vec![server.send(server.request(Method::GET, "/version")).await];
    for (status, method, path, body) in requests {
        let response = given::send(&server, method, &path, &body).await;
        responses.push(response.expect(status));
    }
    for response in responses {
        let media_type = response.header("content-type").unwrap();
        assert_eq!(media_type, "application/json;charset=UTF-8", "{response:?}");
        response.json();
    }
}

#[tokio::test]
async fn the_server_header_and_the_log_have_the_version() {
    let server = Server::start().await;
    let version = concat!(r#""keywright.version":""#, env!("CARGO_PKG_VERSION"), '"');
    server.log().assert_contains(version);
    let expected = concat!("keywright/", env!("CARGO_PKG_VERSION"));
    for response in [
        server.get("/info").await,
        server.get("/api/v1/data?name=/absent").await,
        server.send(server.request(Method::GET, "/version")).await,
    ] {
        let header = response.header("server").unwrap().to_lowercase();
        assert_eq!(header, expected, "{response:?}");
    }
}

#[tokio::test]
async fn every_absent_resource_gets_the_same_404() {
    let server = Server::reused().await;
    let absent = server.get("/api/v1/data?name=/absent").await.expect(404);
    absent.assert_contains("does not exist");
    for (status, method, path, body) in given::requests(
        r#"
        404 GET /api/v1/data?name=/also/absent&current=true
        404 GET /api/v1/data/8ffd2a43-0ba6-44cf-8b55-e2e9ba2cb9e9
        404 GET /api/v1/data/no-uuid
        404 DELETE /api/v1/data?name=/absent
        404 POST /api/v1/regenerate {"name": "/absent"}
        404 POST /api/v1/data {"name": "/absent", "regenerate": true}
        404 GET /api/v1/certificates?name=/absent
        "#,
    ) {
        let response = given::send(&server, method, &path, &body).await;
        assert_eq!(response.expect(status).body, absent.body);
    }
}

// Protocols of a connection.

#[tokio::test]
async fn plaintext_requests_get_no_response() {
    let server = Server::reused().await;
    let address = server.base_url().trim_start_matches("https://").to_owned();
    let response = tokio::task::spawn_blocking(move || {
        let mut connection = TcpStream::connect(&address).unwrap();
        connection
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        connection
            .write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            .unwrap();
        let mut response = Vec::new();
        // The server may reset the connection instead of closing it.
        let _ = connection.read_to_end(&mut response);
        String::from_utf8_lossy(&response).into_owned()
    })
    .await
    .unwrap();
    response.assert_lacks("HTTP/");
    response.assert_lacks("UP");
    server.get("/health").await.expect(200);
}
