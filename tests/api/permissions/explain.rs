//! `GET /api/v2/permissions/explain`: the reason for allowing or denying an operation.

use keywright_harness::{Caller, Response, Server, Text};
use serde_json::{Value, json};

use super::{by_name, client_with, permission};
use crate::given::assert_refused;

#[tokio::test]
async fn an_explanation_lists_considered_rules_nearest_first() {
    let server = Server::reused().await;
    let everything = server.grant("/*", "other", &["read", "delete"]).await;
    let below = server.grant("/a/*", "other", &["delete", "write"]).await;
    server.grant("/a", "other", &["read"]).await;
    server.grant("/a/b", "someone", &["read"]).await;
    let explained = explain(&server, "/a/b/c", "other", "delete").await;
    let expected = json!({
        "actor": "other",
        "path": "/a/b/c",
        "operation": "delete",
        "allowed": true,
        "enforced": true,
        "rules": [
            {"path": "/a/b/c", "uuid": null, "operations": []},
            {"path": "/a/b/*", "uuid": null, "operations": []},
            {"path": "/a/*", "uuid": below, "operations": ["write", "delete"]},
            {"path": "/*", "uuid": everything, "operations": ["read", "delete"]},
        ],
        "allowed_by": {"uuid": below, "path": "/a/*"},
        "missing": null,
    });
    assert_eq!(explained, expected);
    let explained = explain(&server, "/a/b/c", "other", "read").await;
    let allowed_by = json!({"uuid": everything, "path": "/*"});
    assert_eq!(explained["allowed_by"], allowed_by);
}

#[tokio::test]
async fn a_denial_names_the_permission_that_would_allow_it() {
    let server = Server::reused().await;
    server.grant("/a/*", "other", &["write"]).await;
    let explained = explain(&server, "a/b", "other", "read_acl").await;
    assert_eq!(explained["allowed"], false);
    assert_eq!(explained["allowed_by"], Value::Null);
    let needed = permission("/a/b", "other", &["read_acl"]);
    assert_eq!(explained["missing"]["permission"], needed);
    let reason = explained["missing"]["reason"].as_str().unwrap();
    for named in ["other", "/a/b", "read_acl"] {
        reason.assert_contains(named);
    }
    server.post(super::PERMISSIONS, needed).await.expect(201);
    let explained = explain(&server, "/a/b", "other", "read_acl").await;
    assert_eq!(explained["allowed"], true);
}

#[tokio::test]
async fn the_explanation_matches_enforcement() {
    let server = Server::reused().await;
    for name in ["/a", "/a/b", "/A/b", "/a/b/c"] {
        server.set_value(name, "x").await;
    }
    let caller = server.as_client("someone").await;
    for granted in [
        &[("/a", &["read"][..])][..],
        &[("/a/*", &["read"])],
        &[("/a/b", &["write", "delete"])],
        &[("/A/*", &["read"])],
        &[("/*", &["write"])],
        &[("/*", &["read", "read_acl"])],
        &[("/a/*", &["read"]), ("/A/*", &["read"])],
        &[("/a/*", &["delete"]), ("/A/b", &["delete"])],
    ] {
        let mut ids = Vec::new();
        for (path, operations) in granted {
            ids.push(server.grant(path, caller.actor(), operations).await);
        }
        for name in ["/a", "/a/b", "/A/b", "/a/b/c", "/gone"] {
            for (operation, requested) in [
                ("read", format!("/api/v1/data?name={name}")),
                ("read_acl", by_name(name)),
            ] {
                let explained = explain(&server, name, caller.actor(), operation).await;
                let is_allowed = explained["allowed"].as_bool().unwrap();
                let status = caller.get(&requested).await.status;
                let is_done = is_allowed && name != "/gone";
                assert_eq!(status == 200, is_done, "{granted:?} {operation} {name}");
            }
            let explained = explain(&server, name, caller.actor(), "write").await;
            let is_allowed = explained["allowed"].as_bool().unwrap();
            let body = json!({"name": name, "type": "password", "value": "y"});
            let status = caller.put("/api/v1/data", body).await.status;
            // The type differs, so that an existing credential does not change.
            let is_written = name == "/gone";
            let expected = match (is_allowed, is_written) {
                (false, _) => 403,
                (true, false) => 400,
                (true, true) => 200,
            };
            assert_eq!(status, expected, "{granted:?} write {name}");
            let explained = explain(&server, name, caller.actor(), "delete").await;
            let is_deleted = explained["allowed"] == true && name != "/gone";
            let status = caller
                .delete(&format!("/api/v1/data?name={name}"))
                .await
                .status;
            assert_eq!(status == 204, is_deleted, "{granted:?} delete {name}");
            if is_deleted {
                server.set_value(&name.to_lowercase(), "x").await;
            }
        }
        let _ = server.delete("/api/v1/data?name=/gone").await;
        for id in ids {
            server.revoke(&id).await;
        }
    }
}

#[tokio::test]
async fn a_wildcard_path_is_explained_by_rules_for_its_permissions() {
    let server = Server::reused().await;
    server.grant("/a/*", "other", &["write_acl"]).await;
    for (path, is_allowed) in [
        ("/a/*", true),
        ("/a/b/*", true),
        ("/*", false),
        ("*", false),
    ] {
        let explained = explain(&server, path, "other", "write_acl").await;
        assert_eq!(explained["allowed"], is_allowed, "{path}");
    }
}

#[tokio::test]
async fn an_explanation_reveals_no_hidden_name_in_another_casing() {
    let server = Server::reused().await;
    let reader = client_with(&server, "/A/*", &["read_acl"]).await;
    server.grant("/A/*", "other", &["read"]).await;
    server.set_value("/a/hidden", "x").await;
    let explained = async |name: &str| {
        let path = format!("/A/{name}");
        let explained = request_explanation(&reader, &path, "other", "read").await;
        explained.expect(200).body.replace(name, "absent")
    };
    assert_eq!(explained("hidden").await, explained("absent").await);
    server.grant("/a/*", reader.actor(), &["read_acl"]).await;
    let visible = request_explanation(&reader, "/A/hidden", "other", "read").await;
    assert_eq!(visible.expect(200).json()["allowed"], false);
}

#[tokio::test]
async fn a_denial_in_the_stored_casing_names_the_stored_name() {
    let server = Server::reused().await;
    server.set_value("/a/b", "x").await;
    server.grant("/A/*", "other", &["read"]).await;
    let explained = explain(&server, "/A/b", "other", "read").await;
    assert_eq!(explained["allowed"], false);
    assert_eq!(explained["allowed_by"], Value::Null);
    let needed = permission("/a/b", "other", &["read"]);
    assert_eq!(explained["missing"]["permission"], needed);
    server.post(super::PERMISSIONS, needed).await.expect(201);
    let explained = explain(&server, "/A/b", "other", "read").await;
    assert_eq!(explained["allowed"], true);
    assert_eq!(explained["allowed_by"]["path"], "/A/*");
    assert_eq!(explained["missing"], Value::Null);
}

#[tokio::test]
async fn changing_permissions_requires_only_the_requested_casing() {
    let server = Server::reused().await;
    server.set_value("/a/b", "x").await;
    let caller = client_with(&server, "/A/*", &["write_acl"]).await;
    let explained = explain(&server, "/A/b", caller.actor(), "write_acl").await;
    assert_eq!(explained["allowed"], true);
    let added = permission("/A/b", "other", &["read"]);
    caller.post(super::PERMISSIONS, added).await.expect(201);
}

#[tokio::test]
async fn an_incomplete_query_is_refused() {
    let server = Server::reused().await;
    let refused = "
        400 GET /api/v2/permissions/explain?
        400 GET /api/v2/permissions/explain?actor=x&path=/a
        400 GET /api/v2/permissions/explain?actor=x&operation=read
        400 GET /api/v2/permissions/explain?path=/a&operation=read
        400 GET /api/v2/permissions/explain?actor=&path=/a&operation=read
        400 GET /api/v2/permissions/explain?actor=x&path=&operation=read
        400 GET /api/v2/permissions/explain?actor=x&path=/a&operation=
        400 GET /api/v2/permissions/explain?actor=x&path=/a&operation=read&operation=write
        400 GET /api/v2/permissions/explain?actor=x&path=/a/&operation=read
        400 GET /api/v2/permissions/explain?actor=x&path=/a*&operation=read
        400 GET /api/v2/permissions/explain?actor=x&path=/&operation=read
        400 GET /api/v2/permissions/explain?actor=x&path={long}&operation=read
        400 GET /api/v2/permissions/explain?actor={long}&path=/a&operation=read
        422 GET /api/v2/permissions/explain?actor=x&path=/a&operation=execute
        422 GET /api/v2/permissions/explain?actor=x&path=/a&operation=READ
    ";
    assert_refused(&server, &refused.replace("{long}", &"x".repeat(256))).await;
}

/// Returns an explanation, requested by the client `developer`.
async fn explain(server: &Server, path: &str, actor: &str, operation: &str) -> Value {
    server
        .get_json(&explanation_path(path, actor, operation))
        .await
}

async fn request_explanation(
    caller: &Caller,
    path: &str,
    actor: &str,
    operation: &str,
) -> Response {
    caller.get(&explanation_path(path, actor, operation)).await
}

fn explanation_path(path: &str, actor: &str, operation: &str) -> String {
    format!("/api/v2/permissions/explain?path={path}&actor={actor}&operation={operation}")
}
