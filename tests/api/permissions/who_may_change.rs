//! Authorization to read and change permissions, and the order of checks.

use keywright_harness::{Caller, Options, Server};
use reqwest::Method;
use serde_json::{Value, json};

use super::{
    ALL, BY_CREDENTIAL, PERMISSIONS, UNKNOWN_ID, address, client_with, on_credential, permission,
    query, send, stored,
};
use crate::given;

/// A granted path, a requested path, and whether the first covers the second.
const COVERED: [(&str, &str, bool); 16] = [
    ("/a", "/a", true),
    ("/a", "/a/b", false),
    ("/a", "/a/*", false),
    ("/a", "/A", false),
    ("/a/*", "/a", false),
    ("/a/*", "/a/*", true),
    ("/a/*", "/a/b", true),
    ("/a/*", "/a/b/c", true),
    ("/a/*", "/a/b/*", true),
    ("/a/*", "/A/b", false),
    ("/a/*", "/ab", false),
    ("/a/*", "/*", false),
    ("/a/b", "/a/*", false),
    ("/*", "/*", true),
    ("/*", "/a", true),
    ("/*", "/a/*", true),
];

#[tokio::test]
async fn read_acl_on_a_path_covers_permissions_on_it_and_below() {
    let server = Server::reused().await;
    for (granted, path, is_covered) in COVERED {
        let reader = client_with(&server, granted, &["read_acl"]).await;
        let id = server.grant(path, "other", &["read"]).await;
        let status = if is_covered { 200 } else { 404 };
        for requested in [
            address(&id),
            query(path, "other"),
            format!("{PERMISSIONS}/explain?path={path}&actor=other&operation=read"),
        ] {
            let response = reader.get(&requested).await;
            assert_eq!(response.status, status, "{granted}: {response:?}");
        }
        for (method, requested, body) in changes(path, &id) {
            let response = send(&reader, &method, &requested, &body).await;
            assert_eq!(response.status, 404, "{granted}: {response:?}");
        }
        assert!(stored(&server, path, "other").await.is_some());
        revoke_all(&server, &[granted, path]).await;
    }
}

#[tokio::test]
async fn write_acl_on_a_path_covers_permissions_on_it_and_below() {
    let server = Server::reused().await;
    for (granted, path, is_covered) in COVERED {
        let writer = client_with(&server, granted, &["write_acl"]).await;
        let id = server.grant(path, "other", &["read"]).await;
        for (method, requested, body) in changes(path, &id) {
            let response = send(&writer, &method, &requested, &body).await;
            let is_done = (200..300).contains(&response.status);
            assert_eq!(is_done, is_covered, "{granted}: {response:?}");
            assert!(is_done || response.status == 404, "{response:?}");
        }
        for requested in [address(&id), query(path, "other")] {
            writer.get(&requested).await.expect(404);
        }
        revoke_all(&server, &[granted, path]).await;
    }
}

#[tokio::test]
async fn only_acl_operations_allow_reading_or_changing_permissions() {
    let server = Server::reused().await;
    let stranger = client_with(&server, "/*", &["read", "write", "delete"]).await;
    server.set_value("/a", "x").await;
    let id = server.grant("/a", "other", &["read"]).await;
    for (method, requested, body) in requests("/a", &id) {
        let response = send(&stranger, &method, &requested, &body).await;
        response.expect(404);
    }
}

#[tokio::test]
async fn a_hidden_permission_looks_like_an_absent_one() {
    let server = Server::reused().await;
    server.set_value("/there/a", "x").await;
    let id = server.grant("/there/a", "other", &["read"]).await;
    let stranger = server.as_client("stranger").await;
    let (there, absent) = (requests("/there/a", &id), requests("/gone/a", UNKNOWN_ID));
    for ((method, one, body), (_, other, other_body)) in there.into_iter().zip(absent) {
        let refused = send(&stranger, &method, &one, &body).await.expect(404);
        let response = send(&stranger, &method, &other, &other_body).await;
        let absent = response.expect(404);
        assert_eq!(refused.body, absent.body, "{method} {one}");
        let kind = |response: &keywright_harness::Response| {
            response.header("content-type").map(str::to_owned)
        };
        assert_eq!(kind(&refused), kind(&absent));
    }
    // Permitted callers get the same response for absent permissions.
    let developer = server.as_client("developer").await;
    let refused = stranger.get(&address(&id)).await.expect(404);
    let absent = developer.get(&address(UNKNOWN_ID)).await.expect(404);
    assert_eq!(refused.body, absent.body);
}

#[tokio::test]
async fn no_caller_may_add_change_or_delete_its_own_permissions() {
    let server = Server::reused().await;
    let user = "3f0b6a3c-5f0e-4a9b-9d0e-6d1c4a1f2b11";
    for caller in [
        server.as_client("someone").await,
        server.as_user(user).await,
    ] {
        let id = server.grant("/*", caller.actor(), &ALL).await;
        for (method, requested, body) in changes_of(&caller, "/*", &id) {
            let response = send(&caller, &method, &requested, &body).await;
            response.expect(400).error();
        }
        let actual = stored(&server, "/*", caller.actor()).await.unwrap();
        assert_eq!(actual["operations"], json!(ALL));
        for (method, requested, body) in changes_of(&caller, "/a", UNKNOWN_ID) {
            if requested.ends_with(UNKNOWN_ID) {
                continue;
            }
            let response = send(&caller, &method, &requested, &body).await;
            response.expect(400);
        }
    }
}

#[tokio::test]
async fn own_permissions_can_be_read() {
    let server = Server::reused().await;
    let reader = client_with(&server, "/a", &["read_acl"]).await;
    let found = reader.get(&query("/a", reader.actor())).await.expect(200);
    let id = found.json()["uuid"].as_str().unwrap().to_owned();
    reader.get(&address(&id)).await.expect(200);
}

#[tokio::test]
async fn actors_differ_by_kind_and_casing() {
    let server = Server::reused().await;
    server.set_value("/a", "x").await;
    server.grant("/a", "uaa-client:one", &["read"]).await;
    let read = "/api/v1/data?name=/a";
    server.as_client("one").await.get(read).await.expect(200);
    for caller in [
        server.as_client("One").await,
        server.as_client("one ").await,
        server.as_client("other").await,
        server.as_user("one").await,
    ] {
        caller.get(read).await.expect(404);
    }
    server.grant("/a", "uaa-user:one", &["read"]).await;
    server.as_user("one").await.get(read).await.expect(200);
}

/// Revokes the permissions of the test's actors on these paths.
async fn revoke_all(server: &Server, paths: &[&str]) {
    for path in paths {
        for actor in ["uaa-client:someone", "other", "third"] {
            if let Some(permission) = stored(server, path, actor).await {
                server.revoke(permission["uuid"].as_str().unwrap()).await;
            }
        }
    }
}

/// The method, the path and the body of a request.
type Request = (Method, String, Value);

fn get(path: impl Into<String>) -> Request {
    (Method::GET, path.into(), Value::Null)
}

fn post(path: impl Into<String>, body: Value) -> Request {
    (Method::POST, path.into(), body)
}

fn put(path: impl Into<String>, body: Value) -> Request {
    (Method::PUT, path.into(), body)
}

fn patch(path: impl Into<String>, body: Value) -> Request {
    (Method::PATCH, path.into(), body)
}

fn delete(path: impl Into<String>) -> Request {
    (Method::DELETE, path.into(), Value::Null)
}

/// Returns every request that changes permissions on a path; the deletion by id is last.
fn changes(path: &str, id: &str) -> Vec<Request> {
    let by_name = format!("{BY_CREDENTIAL}?credential_name={path}&actor=third");
    vec![
        post(PERMISSIONS, permission(path, "third", &["read"])),
        delete(by_name),
        post(BY_CREDENTIAL, on_credential(path, "third", &["read"])),
        put(address(id), permission(path, "other", &["write"])),
        patch(address(id), json!({"operations": ["delete"]})),
        delete(address(id)),
    ]
}

/// Returns every request that reads or changes permissions on a path.
fn requests(path: &str, id: &str) -> Vec<Request> {
    let mut requests = changes(path, id);
    for requested in [
        address(id),
        query(path, "other"),
        format!("{BY_CREDENTIAL}?credential_name={path}"),
        format!("{PERMISSIONS}/explain?path={path}&actor=other&operation=read"),
    ] {
        requests.push(get(requested));
    }
    requests
}

/// Returns every request that changes the permission of a caller on a path.
fn changes_of(caller: &Caller, path: &str, id: &str) -> Vec<Request> {
    let actor = caller.actor();
    let by_name = format!("{BY_CREDENTIAL}?credential_name={path}&actor={actor}");
    let body = permission(path, actor, &["read"]);
    vec![
        post(PERMISSIONS, body.clone()),
        put(address(id), body),
        patch(address(id), json!({"operations": ["read"]})),
        delete(address(id)),
        post(BY_CREDENTIAL, on_credential(path, actor, &["read"])),
        delete(by_name),
    ]
}

// The order of checks: syntax, authorization, then rules.

const MALFORMED_REQUESTS: &str = r#"
    400 GET /api/v2/permissions
    422 POST /api/v2/permissions {}
    400 POST /api/v2/permissions {"path": "/a*", "actor": "x", "operations": ["read"]}
    422 POST /api/v2/permissions {"path": "/a", "actor": "x", "operations": ["execute"]}
    422 POST /api/v2/permissions {"unknown": 1, "operations": ["read"]}
    400 PUT /api/v2/permissions/{id} {"path": "/a", "actor": "", "operations": ["read"]}
    422 PUT /api/v2/permissions/{id} {"path": "/a", "actor": "other", "operations": ["execute"]}
    422 PATCH /api/v2/permissions/{id} {}
    422 PATCH /api/v2/permissions/{id} {"operations": ["execute"]}
    400 GET /api/v1/permissions
    400 DELETE /api/v1/permissions
    400 POST /api/v1/permissions {"credential_name": "/a", "permissions": [{"path": "/b", "actor": "x", "operations": ["read"]}]}
    422 POST /api/v1/permissions {"credential_name": "/a", "permissions": [{"path": "/a", "actor": "x", "operations": ["execute"]}]}
    400 GET /api/v2/permissions/explain
"#;

#[tokio::test]
async fn malformed_requests_are_rejected_before_authorization() {
    let server = Server::reused().await;
    let id = server.grant("/a", "other", &["read"]).await;
    let stranger = server.as_client("stranger").await;
    for (status, method, path, body) in given::requests(&MALFORMED_REQUESTS.replace("{id}", &id)) {
        let response = send(&stranger, &method, &path, &body).await;
        response.expect(status);
    }
}

#[tokio::test]
async fn without_write_acl_own_permissions_look_absent() {
    let server = Server::reused().await;
    let stranger = server.as_client("stranger").await;
    let own = server.grant("/a", stranger.actor(), &["read"]).await;
    for (method, path, body) in [
        // The caller's own permission, with unchanged and with changed fields.
        post(PERMISSIONS, permission("/a", stranger.actor(), &["read"])),
        put(address(&own), permission("/a", stranger.actor(), &["read"])),
        put(address(&own), permission("/b", "other", &["read"])),
        patch(address(&own), json!({"operations": ["read"]})),
        delete(address(&own)),
        post(
            BY_CREDENTIAL,
            on_credential("/a", stranger.actor(), &["read"]),
        ),
    ] {
        let response = send(&stranger, &method, &path, &body).await;
        response.expect(404);
    }
}

// Permissions are stored even if they are not enforced.

#[tokio::test]
async fn without_enforcement_every_caller_may_change_permissions() {
    let server = Server::reused_with(&Options::default().without_enforcement()).await;
    server.set_value("/a", "x").await;
    let caller = server.as_client("stranger").await;
    for actor in ["other", caller.actor()] {
        let added = caller.post(PERMISSIONS, permission("/a", actor, &["read"]));
        let added = added.await.expect(201).json();
        let one = address(added["uuid"].as_str().unwrap());
        let whole = permission("/a", actor, &["write"]);
        let by_name = format!("{BY_CREDENTIAL}?credential_name=/a");
        for (request, status) in [
            (get(one.clone()), 200),
            (get(query("/a", actor)), 200),
            (put(one.clone(), whole), 200),
            (patch(one.clone(), json!({"operations": ALL})), 200),
            (delete(one), 200),
            (
                post(BY_CREDENTIAL, on_credential("/a", actor, &["read"])),
                201,
            ),
            (get(by_name.clone()), 200),
            (delete(format!("{by_name}&actor={actor}")), 204),
        ] {
            let (method, path, body) = request;
            let response = send(&caller, &method, &path, &body).await;
            assert_eq!(response.status, status, "{actor}: {response:?}");
        }
    }
}

#[tokio::test]
async fn without_enforcement_missing_and_existing_permissions_differ() {
    let server = Server::reused_with(&Options::default().without_enforcement()).await;
    let caller = server.as_client("stranger").await;
    let whole = permission("/a", "other", &["read"]);
    let by_name = format!("{BY_CREDENTIAL}?credential_name=/a");
    for (method, path, body) in [
        get(address(UNKNOWN_ID)),
        get(query("/a", "other")),
        put(address(UNKNOWN_ID), whole.clone()),
        patch(address(UNKNOWN_ID), json!({"operations": ["read"]})),
        delete(address(UNKNOWN_ID)),
        get(by_name.clone()),
        delete(format!("{by_name}&actor=other")),
    ] {
        let response = send(&caller, &method, &path, &body).await;
        response.expect(404);
    }
    caller.post(PERMISSIONS, whole.clone()).await.expect(201);
    caller.post(PERMISSIONS, whole).await.expect(409);
    let body = on_credential("/a", "other", &["read"]);
    let refused = caller.post(BY_CREDENTIAL, body).await;
    refused.expect_error(409, "the actor other already has all operations");
}

#[tokio::test]
async fn without_enforcement_an_explanation_has_the_missing_grant() {
    let server = Server::reused_with(&Options::default().without_enforcement()).await;
    let caller = server.as_client("stranger").await;
    let explained = explain(&caller).await;
    assert_eq!(explained["enforced"], false);
    assert_eq!(explained["allowed"], true);
    assert_eq!(explained["allowed_by"], Value::Null);
    let needed = permission("/a", "other", &["read"]);
    assert_eq!(explained["missing"]["permission"], needed);
    server.grant("/*", "other", &["read"]).await;
    let explained = explain(&caller).await;
    assert_eq!(explained["allowed_by"]["path"], "/*");
    assert_eq!(explained["missing"], Value::Null);
}

async fn explain(caller: &Caller) -> Value {
    let requested = "/api/v2/permissions/explain?path=/a&actor=other&operation=read";
    caller.get(requested).await.expect(200).json()
}
