//! `/api/v2/permissions`.

use keywright_harness::Server;
use reqwest::Method;
use serde_json::json;

use super::{ALL, PERMISSIONS, UNKNOWN_ID, address, operations, permission, query, stored};
use crate::given::assert_refused;

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
    assert_refused(&server, INVALID_BODIES).await;
    for path in [
        "", "/", "//", "/a/", "a//b", "//a", "/a*", "/*/a", "/a/*/b", "/a/**", "/*/*", "**",
        "/a*/b", "*/", "/a/*/", "//*", "/a//*", "/a b", "/a\\b", "/a,b", "/a+b", "/ä", "/a%2Fb",
        "/a?b", "/a\u{0}",
    ] {
        let body = permission(path, "someone", &["read"]);
        server.post(PERMISSIONS, body).await.expect(400).error();
    }
    assert_eq!(stored(&server, "/a", "someone").await, None);
}

/// Bodies without a valid permission, and words of the errors.
const INVALID_BODIES: &str = r#"
    422 POST /api/v2/permissions {}
    400 POST /api/v2/permissions []
    400 POST /api/v2/permissions "path"
    400 POST /api/v2/permissions null
    400 POST /api/v2/permissions {"actor": "someone", "operations": ["read"]} => path
    400 POST /api/v2/permissions {"path": null, "actor": "someone", "operations": ["read"]}
    400 POST /api/v2/permissions {"path": ["/a"], "actor": "someone", "operations": ["read"]}
    400 POST /api/v2/permissions {"path": "/a", "operations": ["read"]} => actor
    400 POST /api/v2/permissions {"path": "/a", "actor": null, "operations": ["read"]}
    400 POST /api/v2/permissions {"path": "/a", "actor": ["someone"], "operations": ["read"]}
    400 POST /api/v2/permissions {"path": "/a", "actor": 7, "operations": ["read"]}
    400 POST /api/v2/permissions {"path": "/a", "actor": "", "operations": ["read"]}
    400 POST /api/v2/permissions {"path": "/a", "actor": "a\u0000b", "operations": ["read"]}
    422 POST /api/v2/permissions {"path": "/a", "actor": "someone"} => operations
    422 POST /api/v2/permissions {"path": "/a", "actor": "someone", "operations": null}
    400 POST /api/v2/permissions {"path": "/a", "actor": "someone", "operations": []} => operation
    422 POST /api/v2/permissions {"path": "/a", "actor": "someone", "operations": "read"}
    422 POST /api/v2/permissions {"path": "/a", "actor": "someone", "operations": {"read": true}}
    422 POST /api/v2/permissions {"path": "/a", "actor": "someone", "operations": [1]}
    422 POST /api/v2/permissions {"path": "/a", "actor": "someone", "operations": [null]}
    422 POST /api/v2/permissions {"path": "/a", "actor": "someone", "operations": [["read"]]}
    422 POST /api/v2/permissions {"path": "/a", "actor": "someone", "operations": ["execute"]} => execute
    422 POST /api/v2/permissions {"path": "/a", "actor": "someone", "operations": ["read", "READ"]}
    422 POST /api/v2/permissions {"path": "/a", "actor": "someone", "operations": [""]}
    422 POST /api/v2/permissions {"path": "/a", "actor": "someone", "operations": ["read-acl"]}
    422 POST /api/v2/permissions {"path": "/a", "actor": "someone", "operations": ["read"], "uuid": "7"}
    422 POST /api/v2/permissions {"path": "/a", "actor": "someone", "operations": ["read"], "operation": "read"}
    422 POST /api/v2/permissions {"path": "/a", "actor": "someone", "operations": ["read"], "": 1}
    422 POST /api/v2/permissions {"paths": "/a"} => paths
"#;

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
        server.post(PERMISSIONS, body).await.expect(status);
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
        let in_upper_case = server.get(&address(&id.to_uppercase())).await;
        assert_eq!(in_upper_case.expect(200).body, by_id.body);
        let found = server.get(&query(requested_path, requested_actor)).await;
        assert_eq!(found.expect(200).body, by_id.body);
    }
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
        server.get(&query(path, actor)).await.expect(404).error();
    }
}

#[tokio::test]
async fn an_unknown_or_malformed_id_is_404_for_every_method() {
    let server = Server::reused().await;
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
        let refused = r#"
            404 GET /api/v2/permissions/{id}
            404 PUT /api/v2/permissions/{id} {"path": "/a", "actor": "someone", "operations": ["read"]}
            404 PATCH /api/v2/permissions/{id} {"operations": ["read"]}
            404 DELETE /api/v2/permissions/{id}
        "#;
        assert_refused(&server, &refused.replace("{id}", id)).await;
    }
    assert_eq!(stored(&server, "/a", "someone").await, None);
}

#[tokio::test]
async fn exactly_one_path_and_actor_are_required() {
    let server = Server::reused().await;
    let refused = "
        400 GET /api/v2/permissions => path
        400 GET /api/v2/permissions? => path
        400 GET /api/v2/permissions?path=/a => actor
        400 GET /api/v2/permissions?actor=x => path
        400 GET /api/v2/permissions?path=&actor=x => path
        400 GET /api/v2/permissions?path=/a&actor= => actor
        400 GET /api/v2/permissions?path=/a&path=/a&actor=x => path
        400 GET /api/v2/permissions?path=/a&actor=x&actor=y => actor
        400 GET /api/v2/permissions?Path=/a&actor=x => path
    ";
    assert_refused(&server, refused).await;
}

// `PUT` and `PATCH /api/v2/permissions/{permission_id}`.

#[tokio::test]
async fn a_put_or_patch_replaces_only_the_operations() {
    let server = Server::reused().await;
    let id = server.grant("/a/*", "someone", &["read", "write"]).await;
    let caller = server.as_client("developer").await;
    let put = |path, given: &[&str]| (Method::PUT, permission(path, "someone", given));
    let patch = |given: &[&str]| (Method::PATCH, json!({"operations": given}));
    for ((method, body), actual) in [
        (put("/a/*", &["delete"]), &["delete"][..]),
        (
            put("a/*", &["read_acl", "read", "read"]),
            &["read", "read_acl"],
        ),
        (put("/a/*", &["read"]), &["read"]),
        (patch(&["delete"]), &["delete"]),
        (
            patch(&["write_acl", "read", "read"]),
            &["read", "write_acl"],
        ),
    ] {
        let response = caller.send(method, &address(&id), body).await.expect(200);
        let mut expected = permission("/a/*", "someone", actual);
        expected["uuid"] = json!(id);
        assert_eq!(response.json(), expected);
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
        server.put(&address(&id), body).await.expect(400).error();
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
    for id in [id.as_str(), UNKNOWN_ID, "no-id"] {
        assert_refused(&server, &INVALID_CHANGES.replace("{id}", id)).await;
        let caller = server.as_client("developer").await;
        let body = permission("/a", &"x".repeat(256), &["write"]);
        caller.put(&address(id), body).await.expect(400).error();
        let body = json!({"operations": vec!["read"; 101]});
        caller.patch(&address(id), body).await.expect(400).error();
    }
    assert_eq!(server.get(&address(&id)).await.expect(200).body, before);
}

/// A PUT requires a whole permission, a PATCH requires operations, and neither accepts other fields.
const INVALID_CHANGES: &str = r#"
    422 PUT /api/v2/permissions/{id} {}
    400 PUT /api/v2/permissions/{id} []
    400 PUT /api/v2/permissions/{id} {"operations": ["write"]}
    400 PUT /api/v2/permissions/{id} {"path": null, "actor": "someone", "operations": ["write"]}
    400 PUT /api/v2/permissions/{id} {"path": "/a/", "actor": "someone", "operations": ["write"]}
    400 PUT /api/v2/permissions/{id} {"path": "/a*", "actor": "someone", "operations": ["write"]}
    400 PUT /api/v2/permissions/{id} {"path": "/a", "actor": "", "operations": ["write"]}
    400 PUT /api/v2/permissions/{id} {"path": "/a", "actor": "someone", "operations": []}
    422 PUT /api/v2/permissions/{id} {"path": "/a", "actor": "someone", "operations": "write"}
    422 PUT /api/v2/permissions/{id} {"path": "/a", "actor": "someone", "operations": ["execute"]}
    422 PUT /api/v2/permissions/{id} {"path": "/a", "actor": "someone", "operations": ["write"], "uuid": "{id}"}
    422 PATCH /api/v2/permissions/{id} {}
    400 PATCH /api/v2/permissions/{id} []
    422 PATCH /api/v2/permissions/{id} {"operations": null}
    400 PATCH /api/v2/permissions/{id} {"operations": []}
    422 PATCH /api/v2/permissions/{id} {"operations": "read"}
    422 PATCH /api/v2/permissions/{id} {"operations": [1]}
    422 PATCH /api/v2/permissions/{id} {"operations": ["execute"]}
    422 PATCH /api/v2/permissions/{id} {"operations": ["read", "Write"]}
    422 PATCH /api/v2/permissions/{id} {"operations": ["write"], "path": "/a"}
    422 PATCH /api/v2/permissions/{id} {"operations": ["write"], "actor": "someone"}
    422 PATCH /api/v2/permissions/{id} {"operations": ["write"], "uuid": "{id}"}
"#;

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
