//! The order of checks: syntax, authorization, then rules.

use keywright_harness::Server;
use reqwest::Method;
use serde_json::{Value, json};

use super::{BY_CREDENTIAL, PERMISSIONS, address, client_with, on_credential, permission, send};

#[tokio::test]
async fn a_malformed_request_is_400_without_any_permission() {
    let server = Server::start().await;
    let id = server.grant("/a", "other", &["read"]).await;
    let stranger = server.as_client("stranger").await;
    let all = PERMISSIONS.to_owned();
    let by_credential = BY_CREDENTIAL.to_owned();
    let path_mismatch =
        json!({"credential_name": "/a", "permissions": [permission("/b", "x", &["read"])]});
    for (method, path, body, status) in [
        (Method::GET, all.clone(), Value::Null, 400),
        (Method::POST, all.clone(), json!({}), 422),
        (
            Method::POST,
            all.clone(),
            permission("/a*", "x", &["read"]),
            400,
        ),
        (
            Method::POST,
            all.clone(),
            permission("/a", "x", &["execute"]),
            422,
        ),
        (
            Method::POST,
            all,
            json!({"unknown": 1, "operations": ["read"]}),
            422,
        ),
        (
            Method::PUT,
            address(&id),
            permission("/a", "", &["read"]),
            400,
        ),
        (
            Method::PUT,
            address(&id),
            permission("/a", "other", &["execute"]),
            422,
        ),
        (Method::PATCH, address(&id), json!({}), 422),
        (
            Method::PATCH,
            address(&id),
            json!({"operations": ["execute"]}),
            422,
        ),
        (Method::GET, by_credential.clone(), Value::Null, 400),
        (Method::DELETE, by_credential.clone(), Value::Null, 400),
        (Method::POST, by_credential.clone(), path_mismatch, 400),
        (
            Method::POST,
            by_credential,
            on_credential("/a", "x", &["execute"]),
            422,
        ),
        (Method::GET, address("explain"), Value::Null, 400),
    ] {
        let answer = send(&stranger, &method, &path, &body).await;
        assert_eq!(answer.status, status, "{method} {path} {body}: {answer:?}");
    }
}

#[tokio::test]
async fn without_write_acl_a_path_discloses_no_permissions() {
    let server = Server::start().await;
    let stranger = server.as_client("stranger").await;
    let own = server.grant("/a", stranger.actor(), &["read"]).await;
    for (method, path, body) in [
        // The caller's own permission, an existing one, and one that differs from the stored one.
        (
            Method::POST,
            PERMISSIONS.to_owned(),
            permission("/a", stranger.actor(), &["read"]),
        ),
        (
            Method::PUT,
            address(&own),
            permission("/a", stranger.actor(), &["read"]),
        ),
        (
            Method::PUT,
            address(&own),
            permission("/b", "other", &["read"]),
        ),
        (
            Method::PATCH,
            address(&own),
            json!({"operations": ["read"]}),
        ),
        (Method::DELETE, address(&own), Value::Null),
        (
            Method::POST,
            BY_CREDENTIAL.to_owned(),
            on_credential("/a", stranger.actor(), &["read"]),
        ),
    ] {
        let answer = send(&stranger, &method, &path, &body).await;
        assert_eq!(answer.status, 404, "{method} {path} {body}: {answer:?}");
    }
}

#[tokio::test]
async fn an_own_permission_is_refused_before_an_existing_one() {
    let server = Server::start().await;
    let writer = client_with(&server, "/*", &["write_acl"]).await;
    for (path, body) in [
        (PERMISSIONS, permission("/*", writer.actor(), &["read"])),
        (
            BY_CREDENTIAL,
            on_credential("/*", writer.actor(), &["write_acl"]),
        ),
    ] {
        writer.post(path, body).await.expect(400);
    }
    server.grant("/a", "other", &["read"]).await;
    for (path, body) in [
        (PERMISSIONS, permission("/a", "other", &["read"])),
        (BY_CREDENTIAL, on_credential("/a", "other", &["read"])),
    ] {
        writer.post(path, body).await.expect(409);
    }
}
