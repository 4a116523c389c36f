//! `/api/v2/permissions`.

use keywright_harness::Server;
use serde_json::{Value, json};

use super::{ALL, PERMISSIONS, UNKNOWN_ID, address, operations, permission, query, stored};

// `POST /api/v2/permissions`.

#[tokio::test]
async fn an_added_permission_is_returned_and_stored() {
    let server = Server::reused().await;
    let body = permission("/a/b", "uaa-client:someone", &["read", "write"]);
    let response = server.post(PERMISSIONS, body).await.expect(201);
    let kind = response.header("content-type");
    assert_eq!(kind, Some("application/json;charset=UTF-8"));
    let added = response.json();
    let names: Vec<_> = added.as_object().unwrap().keys().collect();
    assert_eq!(names, ["uuid", "path", "actor", "operations"]);
    let id = added["uuid"].as_str().unwrap();
    assert!(uuid::Uuid::parse_str(id).is_ok() && id == id.to_lowercase());
    assert_eq!(added["path"], "/a/b");
    assert_eq!(added["actor"], "uaa-client:someone");
    assert_eq!(added["operations"], json!(["read", "write"]));
    let actual = server.get(&address(id)).await.expect(200);
    assert_eq!(actual.body, response.body);
}

#[tokio::test]
async fn operations_are_listed_once_and_in_a_fixed_order() {
    let server = Server::reused().await;
    for (number, (given, listed)) in [
        (vec!["read"], vec!["read"]),
        (vec!["write_acl", "read"], vec!["read", "write_acl"]),
        (vec!["delete", "delete", "delete"], vec!["delete"]),
        (
            vec!["write_acl", "read_acl", "delete", "write", "read"],
            ALL.to_vec(),
        ),
        (
            vec!["read_acl", "write", "read_acl", "read", "write"],
            vec!["read", "write", "read_acl"],
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let body = permission(&format!("/{number}"), "someone", &given);
        let added = server.post(PERMISSIONS, body).await.expect(201).json();
        assert_eq!(added["operations"], json!(listed), "{given:?}");
    }
}

#[tokio::test]
async fn a_path_gets_a_leading_slash_and_keeps_its_casing() {
    let server = Server::reused().await;
    for (given, actual) in [
        ("a", "/a"),
        ("/A", "/A"),
        ("a/b/c", "/a/b/c"),
        ("*", "/*"),
        ("a/*", "/a/*"),
        ("/a/b/*", "/a/b/*"),
        ("/aZ09_-/.:()[]", "/aZ09_-/.:()[]"),
    ] {
        let body = permission(given, "someone", &["read"]);
        let added = server.post(PERMISSIONS, body).await.expect(201).json();
        assert_eq!(added["path"], actual);
    }
}

#[tokio::test]
async fn any_text_is_accepted_as_an_actor() {
    let server = Server::reused().await;
    for actor in [
        "someone",
        "uaa-user:7",
        "mtls-app:x",
        "a b",
        "ä/*\"\\",
        "' or 1=1",
        "%",
        "Someone",
    ] {
        let body = permission("/a", actor, &["read"]);
        let added = server.post(PERMISSIONS, body).await.expect(201).json();
        assert_eq!(added["actor"], actor);
    }
}

#[tokio::test]
async fn an_invalid_body_is_refused_and_adds_nothing() {
    let server = Server::reused().await;
    let with = |field: &str, value: Value| {
        let mut body = permission("/a", "someone", &["read"]);
        body[field] = value;
        body
    };
    let without = |field: &str| {
        let mut body = permission("/a", "someone", &["read"]);
        body.as_object_mut().unwrap().remove(field);
        body
    };
    let mut cases = vec![
        (json!({}), 422),
        (json!([]), 400),
        (json!("path"), 400),
        (Value::Null, 400),
        (with("operations", json!([])), 400),
        (with("operations", json!("read")), 422),
        (with("operations", json!({"read": true})), 422),
        (with("operations", json!([1])), 422),
        (with("operations", json!([null])), 422),
        (with("operations", json!([["read"]])), 422),
        (with("operations", json!(["execute"])), 422),
        (with("operations", json!(["read", "READ"])), 422),
        (with("operations", json!([""])), 422),
        (with("operations", json!(["read-acl"])), 422),
        (with("actor", json!(["someone"])), 400),
        (with("actor", json!(7)), 400),
        (with("actor", json!("")), 400),
        (with("actor", json!("a\0b")), 400),
        (with("path", json!(["/a"])), 400),
        (with("uuid", json!("7")), 422),
        (with("operation", json!("read")), 422),
        (with("", json!(1)), 422),
    ];
    for (field, status) in [("path", 400), ("actor", 400), ("operations", 422)] {
        cases.push((without(field), status));
        cases.push((with(field, Value::Null), status));
    }
    for path in [
        "", "/", "//", "/a/", "a//b", "//a", "/a*", "/*/a", "/a/*/b", "/a/**", "/*/*", "**",
        "/a*/b", "*/", "/a/*/", "//*", "/a//*", "/a b", "/a\\b", "/a,b", "/a+b", "/ä", "/a%2Fb",
        "/a?b", "/a\u{0}",
    ] {
        cases.push((with("path", json!(path)), 400));
    }
    for (body, status) in cases {
        let response = server.post(PERMISSIONS, body.clone()).await;
        response.expect(status).error();
    }
    assert_eq!(stored(&server, "/a", "someone").await, None);
}

#[tokio::test]
async fn a_refusal_names_the_invalid_field() {
    let server = Server::reused().await;
    for (body, named) in [
        (json!({"actor": "x", "operations": ["read"]}), "path"),
        (json!({"path": "/a", "operations": ["read"]}), "actor"),
        (json!({"path": "/a", "actor": "x"}), "operations"),
        (permission("/a", "x", &[]), "operation"),
        (permission("/a", "x", &["execute"]), "execute"),
        (json!({"paths": "/a"}), "paths"),
    ] {
        let response = server.post(PERMISSIONS, body.clone()).await;
        assert!(response.error().contains(named), "{body}: {response:?}");
    }
}

#[tokio::test]
async fn path_actor_and_operations_have_a_maximum_length() {
    let server = Server::reused().await;
    let long = |count: usize| format!("/{}", "p".repeat(count - 1));
    let actor = |count: usize| "ä".repeat(count);
    let list = |count: usize| vec!["read"; count];
    for (path, actor, operations, status) in [
        (long(255), actor(255), list(100), 201),
        (format!("{}/*", long(253)), actor(1), list(1), 201),
        (long(255)[1..].to_owned(), actor(1), list(1), 201),
        (long(256), actor(1), list(1), 400),
        (format!("{}/*", long(254)), actor(1), list(1), 400),
        (long(256)[1..].to_owned(), actor(1), list(1), 400),
        (long(100_000), actor(1), list(1), 400),
        (long(9), actor(256), list(1), 400),
        (long(9), actor(1), list(101), 400),
    ] {
        let body = permission(&path, &actor, &operations);
        let response = server.post(PERMISSIONS, body).await;
        assert_eq!(response.status, status, "{} {response:?}", path.len());
    }
}

#[tokio::test]
async fn an_actor_has_one_permission_on_a_path() {
    let server = Server::reused().await;
    server.grant("/a", "someone", &["read"]).await;
    for (path, actor, given, status) in [
        ("/a", "someone", &["read"][..], 409),
        ("a", "someone", &["write"], 409),
        ("/a", "someone", &["read", "write"], 409),
        ("/A", "someone", &["read"], 201),
        ("/a", "Someone", &["read"], 201),
        ("/a/*", "someone", &["read"], 201),
        ("/*", "someone", &["read"], 201),
        ("/a/b", "someone", &["read"], 201),
    ] {
        let body = permission(path, actor, given);
        let response = server.post(PERMISSIONS, body).await;
        assert_eq!(response.status, status, "{path} {actor}: {response:?}");
    }
    assert_eq!(operations(&server, "/a", "someone").await, json!(["read"]));
}

// `GET /api/v2/permissions` and `GET /api/v2/permissions/{permission_id}`.

#[tokio::test]
async fn a_permission_is_found_by_its_id_and_by_path_and_actor() {
    let server = Server::reused().await;
    for (path, actor, requested_path, requested_actor) in [
        ("/a/b", "uaa-client:x", "/a/b", "uaa-client:x"),
        ("/c/d", "uaa-client:x", "c/d", "uaa-client%3Ax"),
        ("/e/*", "some one", "%2Fe%2F%2A", "some+one"),
        ("/*", "ä&b=c", "*", "%C3%A4%26b%3Dc"),
    ] {
        let id = server.grant(path, actor, &["read"]).await;
        let mut expected = permission(path, actor, &["read"]);
        expected["uuid"] = json!(id);
        let by_id = server.get(&address(&id)).await.expect(200);
        assert_eq!(by_id.json(), expected);
        let found = server.get(&query(requested_path, requested_actor)).await;
        assert_eq!(found.expect(200).body, by_id.body);
    }
}

#[tokio::test]
async fn the_id_may_be_in_upper_case() {
    let server = Server::reused().await;
    let id = server.grant("/a", "someone", &["read"]).await;
    let found = server.get(&address(&id.to_uppercase())).await.expect(200);
    assert_eq!(found.json()["uuid"], id);
}

#[tokio::test]
async fn only_the_permission_on_exactly_this_path_is_found() {
    let server = Server::reused().await;
    server.grant("/a/*", "someone", &["read"]).await;
    server.grant("/B", "someone", &["read"]).await;
    for (path, actor) in [
        ("/a", "someone"),
        ("/a/", "someone"),
        ("/a/b", "someone"),
        ("/a/b/*", "someone"),
        ("/*", "someone"),
        ("/b", "someone"),
        ("/B", "Someone"),
        ("/B", "someone%20"),
        ("/B/", "someone"),
        ("//B", "someone"),
        ("/B%20", "someone"),
        ("/%25", "someone"),
        ("/%00", "%00"),
        ("/", "someone"),
        ("/B", &"x".repeat(300)),
        (&"x".repeat(300), "someone"),
    ] {
        let response = server.get(&query(path, actor)).await.expect(404);
        assert!(!response.error().is_empty(), "{path} {actor}");
    }
}

#[tokio::test]
async fn an_unknown_or_malformed_id_is_404_for_every_method() {
    let server = Server::reused().await;
    let caller = server.as_client("developer").await;
    for id in [
        UNKNOWN_ID,
        "7",
        "x",
        "no-id",
        "%00",
        "explained",
        "0b7f1c52-6f5e-4d43-8f0d-0d5c3c1b9a7",
        "0b7f1c52-6f5e-4d43-8f0d-0d5c3c1b9a77x",
        "%2A",
    ] {
        let whole = permission("/a", "someone", &["read"]);
        for response in [
            caller.get(&address(id)).await,
            caller.put(&address(id), whole).await,
            caller
                .patch(&address(id), json!({"operations": ["read"]}))
                .await,
            caller.delete(&address(id)).await,
        ] {
            response.expect(404).error();
        }
    }
    assert_eq!(stored(&server, "/a", "someone").await, None);
}

#[tokio::test]
async fn exactly_one_path_and_actor_are_required() {
    let server = Server::reused().await;
    for (requested, named) in [
        ("", "path"),
        ("?", "path"),
        ("?path=/a", "actor"),
        ("?actor=x", "path"),
        ("?path=&actor=x", "path"),
        ("?path=/a&actor=", "actor"),
        ("?path=/a&path=/a&actor=x", "path"),
        ("?path=/a&actor=x&actor=y", "actor"),
        ("?Path=/a&actor=x", "path"),
    ] {
        let response = server.get(&format!("{PERMISSIONS}{requested}")).await;
        response.expect_error(400, named);
    }
}

// `PUT /api/v2/permissions/{permission_id}`.

#[tokio::test]
async fn a_put_replaces_operations_and_keeps_the_id() {
    let server = Server::reused().await;
    let id = server.grant("/a/*", "someone", &["read", "write"]).await;
    for (path, given) in [
        ("/a/*", &["delete"][..]),
        ("a/*", &["read_acl", "read", "read"]),
        ("/a/*", &["read", "read_acl"]),
    ] {
        let body = permission(path, "someone", given);
        let replaced = server.put(&address(&id), body).await.expect(200).json();
        let mut sorted = given.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        let mut expected = permission("/a/*", "someone", &sorted);
        expected["uuid"] = json!(id);
        assert_eq!(replaced, expected);
        assert_eq!(stored(&server, "/a/*", "someone").await, Some(expected));
    }
}

#[tokio::test]
async fn path_and_actor_cannot_be_changed() {
    let server = Server::reused().await;
    let id = server.grant("/a/*", "someone", &["read"]).await;
    let other = server.grant("/b", "other", &["read"]).await;
    let before = server.get_json(&address(&id)).await;
    for (path, actor) in [
        ("/a", "someone"),
        ("/A/*", "someone"),
        ("/a/b/*", "someone"),
        ("/*", "someone"),
        ("/a/*", "Someone"),
        ("/a/*", "other"),
        ("/b", "other"),
    ] {
        let body = permission(path, actor, &["write"]);
        let response = server.put(&address(&id), body).await;
        assert_eq!(response.status, 400, "{path} {actor}: {response:?}");
        assert!(!response.error().is_empty());
    }
    let after = server.get_json(&address(&id)).await;
    assert_eq!(after, before);
    let body = permission("/b", "other", &["write"]);
    server.put(&address(&other), body).await.expect(200);
}

#[tokio::test]
async fn an_invalid_body_is_refused_and_changes_nothing() {
    let server = Server::reused().await;
    let id = server.grant("/a", "someone", &["read"]).await;
    let before = server.get(&address(&id)).await.expect(200).body;
    let with = |field: &str, value: Value| {
        let mut body = permission("/a", "someone", &["write"]);
        body[field] = value;
        body
    };
    for (body, status) in [
        (json!({}), 422),
        (json!([]), 400),
        (json!({"operations": ["write"]}), 400),
        (with("path", Value::Null), 400),
        (with("path", json!("/a/")), 400),
        (with("path", json!("/a*")), 400),
        (with("actor", json!("")), 400),
        (with("actor", json!("x".repeat(256))), 400),
        (with("operations", json!([])), 400),
        (with("operations", json!("write")), 422),
        (with("operations", json!(["execute"])), 422),
        (with("uuid", json!(id)), 422),
    ] {
        for id in [id.as_str(), UNKNOWN_ID, "no-id"] {
            let response = server.put(&address(id), body.clone()).await;
            response.expect(status).error();
        }
    }
    assert_eq!(server.get(&address(&id)).await.expect(200).body, before);
}

// `PATCH /api/v2/permissions/{permission_id}`.

#[tokio::test]
async fn a_patch_replaces_operations_and_keeps_other_fields() {
    let server = Server::reused().await;
    let id = server.grant("/a/*", "someone", &["read", "write"]).await;
    let caller = server.as_client("developer").await;
    for (given, actual) in [
        (json!(["delete"]), &["delete"][..]),
        (json!(["write_acl", "read", "read"]), &["read", "write_acl"]),
    ] {
        let body = json!({"operations": given});
        let amended = caller.patch(&address(&id), body).await.expect(200).json();
        let mut expected = permission("/a/*", "someone", actual);
        expected["uuid"] = json!(id);
        assert_eq!(amended, expected);
        assert_eq!(stored(&server, "/a/*", "someone").await, Some(expected));
    }
}

#[tokio::test]
async fn a_patch_requires_operations_and_accepts_no_other_field() {
    let server = Server::reused().await;
    let id = server.grant("/a", "someone", &["read"]).await;
    let before = server.get(&address(&id)).await.expect(200).body;
    let caller = server.as_client("developer").await;
    for (body, status) in [
        (json!({}), 422),
        (json!([]), 400),
        (json!({"operations": Value::Null}), 422),
        (json!({"operations": []}), 400),
        (json!({"operations": "read"}), 422),
        (json!({"operations": [1]}), 422),
        (json!({"operations": vec!["read"; 101]}), 400),
        (json!({"operations": ["execute"]}), 422),
        (json!({"operations": ["read", "Write"]}), 422),
        (json!({"operations": ["write"], "path": "/a"}), 422),
        (json!({"operations": ["write"], "actor": "someone"}), 422),
        (json!({"operations": ["write"], "uuid": id}), 422),
    ] {
        for id in [id.as_str(), UNKNOWN_ID, "no-id"] {
            let response = caller.patch(&address(id), body.clone()).await;
            response.expect(status).error();
        }
    }
    assert_eq!(server.get(&address(&id)).await.expect(200).body, before);
}

// `DELETE /api/v2/permissions/{permission_id}`.

#[tokio::test]
async fn deleting_a_permission_returns_and_removes_it() {
    let server = Server::reused().await;
    let id = server.grant("/a", "someone", &["write", "read"]).await;
    let other = server.grant("/a", "other", &["read"]).await;
    let before = server.get(&address(&id)).await.expect(200).body;
    let deleted = server.delete(&address(&id)).await.expect(200);
    assert_eq!(deleted.body, before);
    server.delete(&address(&id)).await.expect(404);
    server.get(&address(&id)).await.expect(404);
    assert_eq!(stored(&server, "/a", "someone").await, None);
    server.get(&address(&other)).await.expect(200);
    let added_again = server.grant("/a", "someone", &["read"]).await;
    assert_ne!(added_again, id);
}

#[tokio::test]
async fn permissions_cannot_be_deleted_by_path_and_actor() {
    let server = Server::reused().await;
    server.grant("/a", "someone", &["read"]).await;
    server
        .delete("/api/v2/permissions?path=/a&actor=someone")
        .await
        .expect(404);
    assert!(stored(&server, "/a", "someone").await.is_some());
}
