//! Authorization to read and change permissions, and the order of checks.

use keywright_harness::{Caller, Options, Response, Server};
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

/// The requests that change permissions on a path; the deletion by id is last.
const CHANGES: &str = r#"
    201 POST /api/v2/permissions {"path": "{path}", "actor": "third", "operations": ["read"]}
    204 DELETE /api/v1/permissions?credential_name={path}&actor=third
    201 POST /api/v1/permissions {"credential_name": "{path}", "permissions": [{"actor": "third", "operations": ["read"]}]}
    200 PUT /api/v2/permissions/{id} {"path": "{path}", "actor": "other", "operations": ["write"]}
    200 PATCH /api/v2/permissions/{id} {"operations": ["delete"]}
    200 DELETE /api/v2/permissions/{id}
"#;

/// The requests that read one permission.
const READS: &str = "
    200 GET /api/v2/permissions/{id}
    200 GET /api/v2/permissions?path={path}&actor=other
    200 GET /api/v2/permissions/explain?path={path}&actor=other&operation=read
";

/// Sends the requests of a table (see [`given::requests`]) about a path and the permission with this id. Returns the expected
/// statuses and the responses.
async fn sent(caller: &Caller, table: &str, path: &str, id: &str) -> Vec<(u16, Response)> {
    let table = table.replace("{path}", path).replace("{id}", id);
    let mut responses = Vec::new();
    for (status, method, target, body) in given::requests(&table) {
        responses.push((status, send(caller, &method, &target, &body).await));
    }
    responses
}

/// Returns the requests that change the permission of this actor.
fn changes_of(actor: &str) -> String {
    CHANGES.replace("third", actor).replace("other", actor)
}

#[tokio::test]
async fn read_acl_on_a_path_covers_permissions_on_it_and_below() {
    let server = Server::reused().await;
    for (granted, path, is_covered) in COVERED {
        let reader = client_with(&server, granted, &["read_acl"]).await;
        let id = server.grant(path, "other", &["read"]).await;
        for (status, response) in sent(&reader, READS, path, &id).await {
            let expected = if is_covered { status } else { 404 };
            assert_eq!(response.status, expected, "{granted}: {response:?}");
        }
        for (_, response) in sent(&reader, CHANGES, path, &id).await {
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
        for (status, response) in sent(&writer, CHANGES, path, &id).await {
            let expected = if is_covered { status } else { 404 };
            assert_eq!(response.status, expected, "{granted}: {response:?}");
        }
        for requested in [address(&id), query(path, "other")] {
            writer.get(&requested).await.expect(404);
        }
        revoke_all(&server, &[granted, path]).await;
    }
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
        let changes = changes_of(caller.actor());
        for (_, response) in sent(&caller, &changes, "/*", &id).await {
            response.expect(400).error();
        }
        let actual = stored(&server, "/*", caller.actor()).await.unwrap();
        assert_eq!(actual["operations"], json!(ALL));
        let by_path = changes.lines().filter(|change| !change.contains("{id}"));
        let by_path = by_path.collect::<Vec<_>>().join("\n");
        for (_, response) in sent(&caller, &by_path, "/a", "").await {
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

// The order of checks: syntax, authorization, then rules.

#[tokio::test]
async fn without_write_acl_own_permissions_look_absent() {
    let server = Server::reused().await;
    let stranger = server.as_client("stranger").await;
    let own = server.grant("/a", stranger.actor(), &["read"]).await;
    for (_, response) in sent(&stranger, &changes_of(stranger.actor()), "/a", &own).await {
        response.expect(404);
    }
    // With changed fields.
    let changed = permission("/b", "other", &["read"]);
    stranger.put(&address(&own), changed).await.expect(404);
}

// Permissions are stored even if they are not enforced.

/// Requests about a permission of the actor `other`, in an order in which all succeed.
const READS_AND_CHANGES: &str = r#"
    200 GET /api/v2/permissions/{id}
    200 GET /api/v2/permissions?path={path}&actor=other
    200 PUT /api/v2/permissions/{id} {"path": "{path}", "actor": "other", "operations": ["write"]}
    200 PATCH /api/v2/permissions/{id} {"operations": ["read", "write", "delete", "read_acl", "write_acl"]}
    200 DELETE /api/v2/permissions/{id}
    201 POST /api/v1/permissions {"credential_name": "{path}", "permissions": [{"actor": "other", "operations": ["read"]}]}
    200 GET /api/v1/permissions?credential_name={path}
    204 DELETE /api/v1/permissions?credential_name={path}&actor=other
"#;

#[tokio::test]
async fn without_enforcement_every_caller_may_change_permissions() {
    let server = Server::reused_with(&Options::default().without_enforcement()).await;
    server.set_value("/a", "x").await;
    let caller = server.as_client("stranger").await;
    for actor in ["other", caller.actor()] {
        let added = caller.post(PERMISSIONS, permission("/a", actor, &["read"]));
        let added = added.await.expect(201).json();
        let requests = READS_AND_CHANGES.replace("other", actor);
        let id = added["uuid"].as_str().unwrap();
        for (status, response) in sent(&caller, &requests, "/a", id).await {
            assert_eq!(response.status, status, "{actor}: {response:?}");
        }
    }
}

#[tokio::test]
async fn without_enforcement_missing_and_existing_permissions_differ() {
    let server = Server::reused_with(&Options::default().without_enforcement()).await;
    let caller = server.as_client("stranger").await;
    let requests = READS_AND_CHANGES
        .lines()
        .filter(|line| !line.contains("POST"));
    let requests = requests.collect::<Vec<_>>().join("\n");
    for (_, response) in sent(&caller, &requests, "/a", UNKNOWN_ID).await {
        response.expect(404);
    }
    let whole = permission("/a", "other", &["read"]);
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
