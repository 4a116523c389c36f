//! The `Authorization` header.

use keywright_harness::Server;
use reqwest::{Method, header};
use serde_json::json;

use super::mint::present;

#[tokio::test]
async fn a_request_without_credentials_is_denied() {
    let server = Server::start().await;
    for (method, path) in [
        (Method::GET, "/version"),
        (Method::GET, "/api/v1/data?name=/a"),
        (Method::GET, "/api/v1/data?path="),
        (
            Method::GET,
            "/api/v1/data/8ffd2a43-0ba6-44cf-8b55-e2e9ba2cb9e9",
        ),
        (Method::PUT, "/api/v1/data"),
        (Method::POST, "/api/v1/data"),
        (Method::DELETE, "/api/v1/data?name=/a"),
        (Method::POST, "/api/v1/regenerate"),
        (Method::POST, "/api/v1/interpolate"),
    ] {
        let request = server
            .request(method.clone(), path)
            .header(header::CONTENT_TYPE, "application/json")
            .body(json!({"name": "/a", "type": "value", "value": "v"}).to_string());
        let answer = server.send(request).await;
        assert_eq!(answer.status, 401, "{method} {path}");
        assert_eq!(answer.error(), "access_denied", "{method} {path}");
        let challenge = answer.header("www-authenticate").unwrap();
        assert!(challenge.starts_with("Bearer"), "{challenge}");
        assert!(!challenge.contains("error="), "{challenge}");
    }
    server.get("/api/v1/data?name=/a").await.expect(404);
}

#[tokio::test]
async fn another_scheme_does_not_authenticate() {
    let server = Server::start().await;
    for header in [
        "Basic ZGV2ZWxvcGVyOmRldmVsb3Blci1zZWNyZXQ=",
        "Digest x",
        server.token(),
    ] {
        let request = server
            .request(Method::GET, "/version")
            .header(header::AUTHORIZATION, header);
        assert_eq!(
            server.send(request).await.expect(401).error(),
            "access_denied"
        );
    }
}

#[tokio::test]
async fn a_token_in_the_query_does_not_authenticate() {
    let server = Server::start().await;
    let path = format!("/version?access_token={}", server.token());
    let answer = server
        .send(server.request(Method::GET, &path))
        .await
        .expect(401);
    assert_eq!(answer.error(), "access_denied");
}

#[tokio::test]
async fn the_scheme_is_accepted_in_any_casing() {
    let server = Server::start().await;
    for scheme in ["Bearer", "bearer", "BEARER"] {
        let request = server.request(Method::GET, "/version").header(
            header::AUTHORIZATION,
            format!("{scheme} {}", server.token()),
        );
        server.send(request).await.expect(200);
    }
}

#[tokio::test]
async fn a_malformed_token_is_invalid() {
    let server = Server::start().await;
    let token = server.token();
    let (message, signature) = token.rsplit_once('.').unwrap();
    for text in [
        "x",
        "a.b.c",
        "..",
        "eyJhbGciOiJSUzI1NiJ9.e30.",
        message,
        &format!("{message}."),
        &format!("{token}."),
        &format!("{token}.{signature}"),
        &format!("{token}x"),
        &token[..token.len() - 1],
        &token[1..],
        &"x".repeat(4_000),
    ] {
        let answer = present(&server, text).await;
        assert_eq!(answer.status, 401, "{text}: {answer:?}");
        assert_eq!(answer.error(), "invalid_token", "{text}");
        let challenge = answer.header("www-authenticate").unwrap();
        assert!(
            challenge.contains(r#"error="invalid_token""#),
            "{challenge}"
        );
    }
}

#[tokio::test]
async fn tokens_are_not_logged() {
    let server = Server::start().await;
    server.get("/api/v1/data?path=").await.expect(200);
    let (_, signature) = server.token().rsplit_once('.').unwrap();
    let broken = format!("{}broken", server.token());
    present(&server, &broken).await.expect(401);
    let log = server.whole_log().await;
    assert!(log.contains("/api/v1/data"), "the requests are not logged");
    assert!(!log.contains(signature), "a token was logged");
}
