//! Read-only mode: refused and permitted requests.

use keywright_harness::Server;
use reqwest::{Method, header::CONTENT_TYPE};
use serde_json::json;

use super::switch;
use crate::given;

const ID: &str = "8ffd2a43-0ba6-44cf-8b55-e2e9ba2cb9e9";

#[tokio::test]
async fn every_write_is_503_with_the_reason() {
    let server = Server::start().await;
    given::set_value(&server, "/a", "v").await;
    switch(&server, true).await;
    for (method, path) in writes() {
        // Bodies, queries and the existence of resources are not checked.
        for body in ["", "not JSON", r#"{"unknown":1}"#] {
            let request = server.authorized(method.clone(), &path).body(body);
            let answer = server.send(request).await;
            assert_eq!(answer.status, 503, "{method} {path}: {answer:?}");
            assert!(answer.error().contains("read-only"), "{answer:?}");
            // The end of read-only mode is unknown.
            assert_eq!(answer.header("retry-after"), None);
        }
        let request = server.request(method, &path).bearer_auth(server.token());
        server.send(request.body("{}")).await.expect(503);
    }
    assert_eq!(given::versions(&server, "/a").await.len(), 1);
}

#[tokio::test]
async fn writes_succeed_after_read_only_mode() {
    let server = Server::start().await;
    let set = json!({"name": "/a", "type": "value", "value": "v"});
    switch(&server, true).await;
    server.put("/api/v1/data", set.clone()).await.expect(503);
    server.get("/api/v1/data?name=/a").await.expect(404);
    switch(&server, false).await;
    server.put("/api/v1/data", set).await.expect(200);
    server.get("/api/v1/data?name=/a").await.expect(200);
}

#[tokio::test]
async fn reads_succeed() {
    let server = Server::start().await;
    let version = given::set(&server, "/a", "json", json!({"k": 1})).await;
    let by_id = format!("/api/v1/data/{}", given::id(&version));
    let paths = [
        "/info",
        "/health",
        "/version",
        &by_id,
        "/api/v1/data?name=/a",
        "/api/v1/data?path=",
        "/api/v1/data?name=/absent",
        "/api/v1/data",
        "/api/v1/certificates/",
        "/unknown",
    ];
    let mut before = Vec::new();
    for path in paths {
        let answer = server.get(path).await;
        before.push((answer.status, answer.body));
    }
    switch(&server, true).await;
    for (path, before) in paths.into_iter().zip(before) {
        let answer = server.get(path).await;
        assert_eq!((answer.status, answer.body), before, "{path}");
    }
}

#[tokio::test]
async fn interpolation_succeeds() {
    let server = Server::start().await;
    given::set(&server, "/a", "json", json!({"k": 1})).await;
    switch(&server, true).await;
    let document = json!({"s": [{"credentials": {"credhub-ref": "/a"}}]});
    let answer = server.post("/api/v1/interpolate", document).await;
    let filled = json!({"s": [{"credentials": {"k": 1}}]});
    assert_eq!(answer.expect(200).json(), filled);
    server
        .post("/api/v1/interpolate", json!([]))
        .await
        .expect(400);
}

#[tokio::test]
async fn logging_in_succeeds() {
    let server = Server::start().await;
    switch(&server, true).await;
    let request = server
        .request(Method::POST, "/identity/oauth/token")
        .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body("grant_type=client_credentials&client_id=developer&client_secret=developer-secret");
    server.send(request).await.expect(200);
}

#[tokio::test]
async fn head_and_options_count_as_writes() {
    let server = Server::start().await;
    switch(&server, true).await;
    for method in [Method::HEAD, Method::OPTIONS] {
        for path in [
            "/info",
            "/health",
            "/version",
            "/management",
            "/api/v1/data?name=/a",
        ] {
            let answer = server.send(server.authorized(method.clone(), path)).await;
            assert_eq!(answer.status, 503, "{method} {path}");
        }
        let answer = server.send(server.authorized(method, "/unknown")).await;
        assert_eq!(answer.status, 404);
    }
}

#[tokio::test]
async fn unauthenticated_callers_do_not_learn_of_read_only_mode() {
    let server = Server::start().await;
    switch(&server, true).await;
    for (method, path) in writes() {
        let without = server.request(method.clone(), &path);
        assert_eq!(
            server.send(without).await.expect(401).error(),
            "access_denied"
        );
        let forged = server.request(method, &path).bearer_auth("no.valid.token");
        assert_eq!(
            server.send(forged).await.expect(401).error(),
            "invalid_token"
        );
    }
}

#[tokio::test]
async fn a_wrong_method_and_an_unknown_path_are_still_404() {
    let server = Server::start().await;
    switch(&server, true).await;
    for (method, path) in [
        (Method::PATCH, "/api/v1/data"),
        (Method::PUT, "/api/v1/regenerate"),
        (Method::DELETE, "/management"),
        (Method::PUT, "/management"),
        (Method::POST, "/info"),
        (Method::HEAD, "/api/v1/regenerate"),
    ] {
        let answer = server.send(server.authorized(method.clone(), path)).await;
        assert_eq!(
            (answer.status, answer.body.as_str()),
            (404, ""),
            "{method} {path}"
        );
    }
    for method in [Method::PUT, Method::POST, Method::DELETE] {
        let answer = server
            .send(server.authorized(method, "/api/v1/unknown"))
            .await;
        assert!(!answer.expect(404).error().is_empty());
    }
}

#[tokio::test]
async fn a_write_in_progress_completes() {
    let server = Server::start().await;
    let body = json!({"name": "/a", "type": "value", "value": "v"}).to_string();
    let head = format!(
        "PUT /api/v1/data HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nauthorization: Bearer {}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\nexpect: 100-continue\r\n\r\n",
        server.token(),
        body.len()
    );
    let mut begun = server.connect();
    begun.send(head.as_bytes());
    // The server asks for the body once it has admitted the request.
    let asked = begun.receive_until("\r\n\r\n");
    assert!(asked.starts_with("HTTP/1.1 100"), "{asked}");
    switch(&server, true).await;
    begun.send(body.as_bytes());
    assert_eq!(begun.receive_last().0, 200);
    server.get("/api/v1/data?name=/a").await.expect(200);
}

#[tokio::test]
async fn a_refused_write_is_not_logged_as_a_server_error() {
    let server = Server::start().await;
    switch(&server, true).await;
    server.delete("/api/v1/data?name=/a").await.expect(503);
    switch(&server, false).await;
    let log = server.whole_log().await;
    assert!(log.contains(r#""http.status":503"#), "{log}");
    assert!(log.contains(r#""level":"INFO""#), "{log}");
    assert!(!log.contains(r#""level":"ERROR""#), "{log}");
}

/// Every request that writes.
fn writes() -> Vec<(Method, String)> {
    let certificate = format!("/api/v1/certificates/{ID}");
    vec![
        (Method::PUT, "/api/v1/data".to_owned()),
        (Method::POST, "/api/v1/data".to_owned()),
        (Method::DELETE, "/api/v1/data".to_owned()),
        (Method::DELETE, "/api/v1/data?name=/a".to_owned()),
        (Method::POST, "/api/v1/regenerate".to_owned()),
        (Method::POST, "/api/v1/bulk-regenerate".to_owned()),
        (Method::POST, format!("{certificate}/regenerate")),
        (
            Method::PUT,
            format!("{certificate}/update_transitional_version"),
        ),
        (Method::POST, format!("{certificate}/versions")),
        (Method::DELETE, format!("{certificate}/versions/{ID}")),
        (Method::PUT, "/info/..//api/v1/%64ata/".to_owned()),
    ]
}
