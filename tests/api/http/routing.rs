//! Paths and methods, and the order in which a request is checked.

use keywright_harness::Server;
use reqwest::{Method, header};
use serde_json::{Value, json};

use crate::given;

#[tokio::test]
async fn a_trailing_slash_changes_nothing() {
    let server = Server::start().await;
    let version = given::set(&server, "/a", "json", json!({"k": 1})).await;
    let by_id = format!("/api/v1/data/{}", given::id(&version));
    for path in ["/info", "/health", "/version", &by_id] {
        let plain = server.get(path).await.expect(200);
        let slashed = server.get(&format!("{path}/")).await.expect(200);
        assert_eq!(slashed.body, plain.body, "{path}");
    }
    for query in ["name=/a", "path=", "name-like=a"] {
        let plain = server
            .get(&format!("/api/v1/data?{query}"))
            .await
            .expect(200);
        let slashed = server
            .get(&format!("/api/v1/data/?{query}"))
            .await
            .expect(200);
        assert_eq!(slashed.body, plain.body, "{query}");
    }
    let set = json!({"name": "/b", "type": "value", "value": "v"});
    server.put("/api/v1/data/", set).await.expect(200);
    let generate = json!({"name": "/c", "type": "password"});
    server.post("/api/v1/data/", generate).await.expect(200);
    server
        .post("/api/v1/regenerate/", json!({"name": "/c"}))
        .await
        .expect(200);
    server
        .post("/api/v1/interpolate/", json!({}))
        .await
        .expect(200);
    server.delete("/api/v1/data/?name=/b").await.expect(204);
}

#[tokio::test]
async fn a_wrong_method_on_a_known_path_is_404_with_an_empty_body() {
    let server = Server::start().await;
    for (method, path) in wrong_methods() {
        let answer = server.send(server.authorized(method.clone(), path)).await;
        assert_eq!(
            (answer.status, answer.body.as_str()),
            (404, ""),
            "{method} {path}"
        );
    }
}

#[tokio::test]
async fn a_wrong_method_needs_a_token_first_where_the_path_does() {
    let server = Server::start().await;
    for (method, path) in wrong_methods() {
        let is_open = ["/info", "/health"].contains(&path);
        let answer = server.send(server.request(method.clone(), path)).await;
        assert_eq!(
            answer.status,
            if is_open { 404 } else { 401 },
            "{method} {path}"
        );
    }
}

#[tokio::test]
async fn an_unknown_path_is_404_with_an_error() {
    let server = Server::start().await;
    for path in unknown_paths() {
        let answer = server.get(path).await;
        assert_eq!(answer.status, 404, "{path}: {answer:?}");
        assert!(!answer.error().is_empty(), "{path}");
    }
}

#[tokio::test]
async fn an_unknown_path_without_a_token_is_401() {
    let server = Server::start().await;
    for path in unknown_paths() {
        let answer = server.send(server.request(Method::GET, path)).await;
        assert_eq!(answer.status, 401, "{path}");
        assert_eq!(answer.error(), "access_denied", "{path}");
    }
}

#[tokio::test]
async fn a_bad_token_wins_over_all_other_errors() {
    let server = Server::start().await;
    for (method, path, body) in [
        (Method::PUT, "/api/v1/data", "not json"),
        (Method::POST, "/api/v1/data", r#"{"unknown": 1}"#),
        (Method::PATCH, "/api/v1/data", ""),
        (Method::GET, "/api/v1/data?versions=x", ""),
        (Method::DELETE, "/api/v1/data", ""),
        (Method::GET, "/no/such/path", ""),
    ] {
        let request = server
            .request(method.clone(), path)
            .bearer_auth("no.valid.token")
            .body(body);
        let answer = server.send(request).await;
        assert_eq!(
            (answer.status, answer.error().as_str()),
            (401, "invalid_token"),
            "{path}"
        );
    }
}

#[tokio::test]
async fn the_content_type_is_checked_before_the_body() {
    let server = Server::start().await;
    let request = server
        .request(Method::PUT, "/api/v1/data")
        .bearer_auth(server.token())
        .header(header::CONTENT_TYPE, "text/plain")
        .body(r#"{"unknown": 1}"#);
    let answer = server.send(request).await.expect(400);
    assert!(
        answer.error().to_lowercase().contains("content type"),
        "{answer:?}"
    );
}

#[tokio::test]
async fn a_bad_request_wins_over_an_absent_credential() {
    let server = Server::start().await;
    let body = json!({"name": "/absent", "unknown": 1});
    server.post("/api/v1/regenerate", body).await.expect(422);
    server
        .get("/api/v1/data?name=/absent&versions=-1")
        .await
        .expect(400);
    server
        .get("/api/v1/data?name=/absent&current=maybe")
        .await
        .expect(400);
}

#[tokio::test]
async fn a_bad_request_wins_over_the_rules_of_the_stored_credential() {
    let server = Server::start().await;
    given::set_value(&server, "/a", "v").await;
    let other_type_and_unknown: Value =
        json!({"name": "/a", "type": "password", "value": "v", "unknown": 1});
    server
        .put("/api/v1/data", other_type_and_unknown.clone())
        .await
        .expect(422);
    let too_large_and_unknown =
        json!({"name": "/a", "type": "value", "value": "v".repeat(70_000), "unknown": 1});
    server
        .put("/api/v1/data", too_large_and_unknown)
        .await
        .expect(422);
    assert_eq!(given::versions(&server, "/a").await.len(), 1);
}

fn wrong_methods() -> [(Method, &'static str); 18] {
    let by_id = "/api/v1/data/8ffd2a43-0ba6-44cf-8b55-e2e9ba2cb9e9";
    [
        (Method::PATCH, "/api/v1/data"),
        (Method::GET, "/api/v1/regenerate"),
        (Method::PUT, "/api/v1/regenerate"),
        (Method::DELETE, "/api/v1/regenerate"),
        (Method::GET, "/api/v1/interpolate"),
        (Method::PUT, "/api/v1/interpolate"),
        (Method::PUT, by_id),
        (Method::POST, by_id),
        (Method::DELETE, by_id),
        (Method::OPTIONS, "/api/v1/data"),
        (Method::HEAD, "/api/v1/interpolate"),
        (Method::PUT, "/management"),
        (Method::DELETE, "/management"),
        (Method::POST, "/version"),
        (Method::DELETE, "/version"),
        (Method::POST, "/info"),
        (Method::PUT, "/health"),
        (Method::DELETE, "/health"),
    ]
}

fn unknown_paths() -> [&'static str; 8] {
    [
        "/",
        "/api",
        "/api/v1",
        "/api/v3/data",
        "/api/v1/datas",
        "/api/v1/data/a/b",
        "/API/V1/DATA?name=/a",
        "/information",
    ]
}
