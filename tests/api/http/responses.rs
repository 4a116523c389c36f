//! Common properties of responses, and the protocols of a connection.

use std::{
    io::{Read, Write},
    net::TcpStream,
    time::Duration,
};

use keywright_harness::{Response, Server};
use reqwest::{ClientBuilder, Method, Version, tls};
use serde_json::json;

use crate::given;

// Common properties of responses: the media type, and the shape of errors.

#[tokio::test]
async fn every_body_is_json_in_utf_8() {
    let server = Server::reused().await;
    let version = given::set(&server, "/a", "json", json!({"k": "ä"})).await;
    let by_id = format!("/api/v1/data/{}", given::id(&version));
    let mut responses = vec![
        server
            .put(
                "/api/v1/data",
                json!({"name": "/b", "type": "value", "value": "v"}),
            )
            .await,
        server
            .post("/api/v1/data", json!({"name": "/c", "type": "password"}))
            .await,
        server
            .post("/api/v1/regenerate", json!({"name": "/c"}))
            .await,
        server.post("/api/v1/interpolate", json!({})).await,
        server.put("/api/v1/data", json!({})).await,
        server.get("/no/such/path").await,
        server.send(server.request(Method::GET, "/version")).await,
    ];
    for path in [
        "/info",
        "/health",
        "/version",
        "/api/v1/data?name=/a",
        "/api/v1/data?path=",
    ] {
        responses.push(server.get(path).await);
    }
    responses.push(server.get(&by_id).await);
    for response in responses {
        assert_eq!(
            response.header("content-type"),
            Some("application/json;charset=UTF-8"),
            "{response:?}"
        );
        response.json();
    }
}

#[tokio::test]
async fn the_server_header_names_the_product_and_its_version() {
    let server = Server::reused().await;
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
async fn every_error_is_an_object_of_strings_with_a_message() {
    let server = Server::reused().await;
    given::set_value(&server, "/a", "v").await;
    for (status, response) in [
        (400, server.get("/api/v1/data").await),
        (400, server.get("/api/v1/data?name=/a&versions=x").await),
        (400, server.put("/api/v1/data", json!([])).await),
        (
            400,
            server
                .put("/api/v1/data", json!({"name": "/b", "type": "value"}))
                .await,
        ),
        (
            400,
            server
                .post("/api/v1/data", json!({"name": "/b", "type": "value"}))
                .await,
        ),
        (400, server.post("/api/v1/regenerate", json!({})).await),
        (
            400,
            server
                .post("/api/v1/regenerate", json!({"name": "/a"}))
                .await,
        ),
        (400, server.post("/api/v1/interpolate", json!([])).await),
        (404, server.get("/api/v1/data?name=/absent").await),
        (404, server.get("/api/v1/data/absent").await),
        (404, server.delete("/api/v1/data?name=/absent").await),
        (
            404,
            server
                .post("/api/v1/regenerate", json!({"name": "/absent"}))
                .await,
        ),
        (413, set(&server, "value", json!("v".repeat(65_537))).await),
        (422, set(&server, "unheard-of", json!("v")).await),
    ] {
        assert_eq!(response.status, status, "{response:?}");
        assert!(!response.error().is_empty(), "{response:?}");
        assert_eq!(given::fields(&response.json()), ["error"], "{response:?}");
    }
}

#[tokio::test]
async fn a_refused_token_has_an_error_code_and_a_description() {
    let server = Server::reused().await;
    let without = server.request(Method::GET, "/version");
    let with_garbage = server.request(Method::GET, "/version").bearer_auth("x");
    for (code, request) in [("access_denied", without), ("invalid_token", with_garbage)] {
        let response = server.send(request).await.expect(401);
        assert_eq!(response.error(), code);
        assert_eq!(
            given::fields(&response.json()),
            ["error", "error_description"]
        );
        assert!(
            !response.json()["error_description"]
                .as_str()
                .unwrap()
                .is_empty()
        );
    }
}

#[tokio::test]
async fn every_absent_resource_gets_the_same_404() {
    let server = Server::reused().await;
    let absent = server.get("/api/v1/data?name=/absent").await.expect(404);
    for response in [
        server
            .get("/api/v1/data?name=/also/absent&current=true")
            .await,
        server
            .get("/api/v1/data/8ffd2a43-0ba6-44cf-8b55-e2e9ba2cb9e9")
            .await,
        server.get("/api/v1/data/no-uuid").await,
        server.delete("/api/v1/data?name=/absent").await,
        server.regenerate("/absent").await,
        server.get("/api/v1/certificates?name=/absent").await,
        server
            .post(
                "/api/v1/interpolate",
                json!({"s": [{"credentials": {"credhub-ref": "/absent"}}]}),
            )
            .await,
    ] {
        assert_eq!(response.status, 404, "{response:?}");
        assert_eq!(response.body, absent.body);
    }
    assert!(absent.error().contains("does not exist"), "{absent:?}");
}

async fn set(server: &Server, credential_type: &str, value: serde_json::Value) -> Response {
    let body = json!({"name": "/s", "type": credential_type, "value": value});
    server.put("/api/v1/data", body).await
}

// Protocols of a connection.

#[tokio::test]
async fn both_versions_of_http_are_supported() {
    let server = Server::reused().await;
    for (client, version) in [
        (given::client(ClientBuilder::http1_only), Version::HTTP_11),
        (given::client(|builder| builder), Version::HTTP_2),
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
    let server = Server::reused().await;
    for version in [tls::Version::TLS_1_2, tls::Version::TLS_1_3] {
        let client =
            given::client(|builder| builder.tls_version_min(version).tls_version_max(version));
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
    assert!(
        !response.contains("HTTP/") && !response.contains("UP"),
        "{response}"
    );
    server.get("/health").await.expect(200);
}
