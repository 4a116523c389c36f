//! `POST /api/v2/permissions`.

use keywright_harness::Server;
use reqwest::{Method, header};
use serde_json::{Value, json};

use super::{ALL, PERMISSIONS, address, operations, permission, stored};

#[tokio::test]
async fn an_added_permission_is_returned_and_kept() {
    let server = Server::start().await;
    let body = permission("/a/b", "uaa-client:someone", &["read", "write"]);
    let answer = server.post(PERMISSIONS, body).await.expect(201);
    let kind = answer.header("content-type");
    assert_eq!(kind, Some("application/json;charset=UTF-8"));
    let added = answer.json();
    let names: Vec<_> = added.as_object().unwrap().keys().collect();
    assert_eq!(names, ["uuid", "path", "actor", "operations"]);
    let id = added["uuid"].as_str().unwrap();
    assert!(uuid::Uuid::parse_str(id).is_ok() && id == id.to_lowercase());
    assert_eq!(added["path"], "/a/b");
    assert_eq!(added["actor"], "uaa-client:someone");
    assert_eq!(added["operations"], json!(["read", "write"]));
    let kept = server.get(&address(id)).await.expect(200);
    assert_eq!(kept.body, answer.body);
}

#[tokio::test]
async fn operations_are_listed_once_and_in_a_fixed_order() {
    let server = Server::start().await;
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
async fn a_path_gets_its_slash_and_keeps_its_casing() {
    let server = Server::start().await;
    for (given, kept) in [
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
        assert_eq!(added["path"], kept);
    }
}

#[tokio::test]
async fn any_text_is_accepted_as_an_actor() {
    let server = Server::start().await;
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
async fn a_body_that_breaks_a_rule_is_refused_and_adds_nothing() {
    let server = Server::start().await;
    let with = |member: &str, value: Value| {
        let mut body = permission("/a", "someone", &["read"]);
        body[member] = value;
        body
    };
    let without = |member: &str| {
        let mut body = permission("/a", "someone", &["read"]);
        body.as_object_mut().unwrap().remove(member);
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
        (with("path", json!(["/a"])), 400),
        (with("uuid", json!("7")), 422),
        (with("operation", json!("read")), 422),
        (with("", json!(1)), 422),
    ];
    for (member, status) in [("path", 400), ("actor", 400), ("operations", 422)] {
        cases.push((without(member), status));
        cases.push((with(member, Value::Null), status));
    }
    for path in [
        "", "/", "//", "/a/", "a//b", "//a", "/a*", "/*/a", "/a/*/b", "/a/**", "/*/*", "**",
        "/a*/b", "*/", "/a/*/", "/a b", "/a\\b", "/a,b", "/a+b", "/ä", "/a%2Fb", "/a?b", "/a\u{0}",
    ] {
        cases.push((with("path", json!(path)), 400));
    }
    for (body, status) in cases {
        let answer = server.post(PERMISSIONS, body.clone()).await;
        assert_eq!(answer.status, status, "{body}: {answer:?}");
        assert!(!answer.error().is_empty());
    }
    assert_eq!(stored(&server, "/a", "someone").await, None);
}

#[tokio::test]
async fn a_refusal_names_the_invalid_field() {
    let server = Server::start().await;
    for (body, named) in [
        (json!({"actor": "x", "operations": ["read"]}), "path"),
        (json!({"path": "/a", "operations": ["read"]}), "actor"),
        (json!({"path": "/a", "actor": "x"}), "operations"),
        (permission("/a", "x", &[]), "operation"),
        (permission("/a", "x", &["execute"]), "execute"),
        (json!({"paths": "/a"}), "paths"),
    ] {
        let answer = server.post(PERMISSIONS, body.clone()).await;
        assert!(answer.error().contains(named), "{body}: {answer:?}");
    }
}

#[tokio::test]
async fn a_body_must_be_json_with_its_media_type() {
    let server = Server::start().await;
    let body = permission("/a", "someone", &["read"]).to_string();
    for (kind, body, status) in [
        ("text/plain", body.as_str(), 400),
        ("application/json", "", 400),
        ("application/json", "{", 400),
        ("application/json", r#"{"path": "/a", "path": "/b"}"#, 400),
        ("application/json; charset=utf-8", body.as_str(), 201),
    ] {
        let request = server
            .request(Method::POST, PERMISSIONS)
            .bearer_auth(server.token())
            .header(header::CONTENT_TYPE, kind)
            .body(body.to_owned());
        let answer = server.send(request).await;
        assert_eq!(answer.status, status, "{kind} {body}: {answer:?}");
    }
}

#[tokio::test]
async fn path_actor_and_operations_have_a_maximum_length() {
    let server = Server::start().await;
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
        let answer = server.post(PERMISSIONS, body).await;
        assert_eq!(answer.status, status, "{} {answer:?}", path.len());
    }
}

#[tokio::test]
async fn an_actor_has_one_permission_on_a_path() {
    let server = Server::start().await;
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
        let answer = server.post(PERMISSIONS, body).await;
        assert_eq!(answer.status, status, "{path} {actor}: {answer:?}");
    }
    assert_eq!(operations(&server, "/a", "someone").await, json!(["read"]));
}
