//! Authorization to read and change permissions.

use keywright_harness::{Caller, Server};
use reqwest::Method;
use serde_json::{Value, json};

use super::{
    ALL, BY_CREDENTIAL, PERMISSIONS, UNKNOWN_ID, address, client_with, on_credential, permission,
    query, send, stored,
};
use crate::given::set_value;

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
async fn read_acl_on_a_path_is_for_the_permissions_on_it_and_below() {
    for (granted, path, is_covered) in COVERED {
        let server = Server::start().await;
        let reader = client_with(&server, granted, &["read_acl"]).await;
        let id = server.grant(path, "other", &["read"]).await;
        let status = if is_covered { 200 } else { 404 };
        for asked in [
            address(&id),
            query(path, "other"),
            format!("{PERMISSIONS}/explain?path={path}&actor=other&operation=read"),
        ] {
            let answer = reader.get(&asked).await;
            assert_eq!(answer.status, status, "{granted} {asked}: {answer:?}");
        }
        for (method, asked, body) in changes(path, &id) {
            let answer = send(&reader, &method, &asked, &body).await;
            assert_eq!(answer.status, 404, "{granted} {method} {asked}: {answer:?}");
        }
        assert!(stored(&server, path, "other").await.is_some());
    }
}

#[tokio::test]
async fn write_acl_on_a_path_is_for_the_permissions_on_it_and_below() {
    for (granted, path, is_covered) in COVERED {
        let server = Server::start().await;
        let writer = client_with(&server, granted, &["write_acl"]).await;
        let id = server.grant(path, "other", &["read"]).await;
        for (method, asked, body) in changes(path, &id) {
            let answer = send(&writer, &method, &asked, &body).await;
            let is_done = (200..300).contains(&answer.status);
            assert_eq!(
                is_done, is_covered,
                "{granted} {method} {asked}: {answer:?}"
            );
            assert!(is_done || answer.status == 404, "{answer:?}");
        }
        for asked in [address(&id), query(path, "other")] {
            writer.get(&asked).await.expect(404);
        }
    }
}

#[tokio::test]
async fn only_acl_operations_allow_reading_or_changing_permissions() {
    let server = Server::start().await;
    let stranger = client_with(&server, "/*", &["read", "write", "delete"]).await;
    set_value(&server, "/a", "x").await;
    let id = server.grant("/a", "other", &["read"]).await;
    for (method, asked, body) in requests("/a", &id) {
        let answer = send(&stranger, &method, &asked, &body).await;
        assert_eq!(answer.status, 404, "{method} {asked}: {answer:?}");
    }
}

#[tokio::test]
async fn a_hidden_permission_looks_like_an_absent_one() {
    let server = Server::start().await;
    set_value(&server, "/there/a", "x").await;
    let id = server.grant("/there/a", "other", &["read"]).await;
    let stranger = server.as_client("stranger").await;
    let (there, absent) = (requests("/there/a", &id), requests("/gone/a", UNKNOWN_ID));
    for ((method, one, body), (_, other, other_body)) in there.into_iter().zip(absent) {
        let refused = send(&stranger, &method, &one, &body).await.expect(404);
        let absent = send(&stranger, &method, &other, &other_body)
            .await
            .expect(404);
        assert_eq!(refused.body, absent.body, "{method} {one}");
        let kind =
            |answer: &keywright_harness::Answer| answer.header("content-type").map(str::to_owned);
        assert_eq!(kind(&refused), kind(&absent));
    }
    // Permitted callers get the same response for absent permissions.
    let developer = server.as_client("developer").await;
    let refused = stranger.get(&address(&id)).await.expect(404);
    let absent = developer.get(&address(UNKNOWN_ID)).await.expect(404);
    assert_eq!(refused.body, absent.body);
}

#[tokio::test]
async fn no_caller_adds_changes_or_deletes_its_own_permission() {
    let server = Server::start().await;
    let user = "3f0b6a3c-5f0e-4a9b-9d0e-6d1c4a1f2b11";
    for caller in [
        server.as_client("someone").await,
        server.as_user(user).await,
    ] {
        let id = server.grant("/*", caller.actor(), &ALL).await;
        for (method, asked, body) in changes_of(&caller, "/*", &id) {
            let answer = send(&caller, &method, &asked, &body).await;
            assert_eq!(answer.status, 400, "{method} {asked}: {answer:?}");
            assert!(!answer.error().is_empty());
        }
        let kept = stored(&server, "/*", caller.actor()).await.unwrap();
        assert_eq!(kept["operations"], json!(ALL));
        for (method, asked, body) in changes_of(&caller, "/a", UNKNOWN_ID) {
            if asked.ends_with(UNKNOWN_ID) {
                continue;
            }
            let answer = send(&caller, &method, &asked, &body).await;
            assert_eq!(answer.status, 400, "{method} {asked}: {answer:?}");
        }
    }
}

#[tokio::test]
async fn own_permissions_can_be_read() {
    let server = Server::start().await;
    let reader = client_with(&server, "/a", &["read_acl"]).await;
    let found = reader.get(&query("/a", reader.actor())).await.expect(200);
    let id = found.json()["uuid"].as_str().unwrap().to_owned();
    reader.get(&address(&id)).await.expect(200);
}

#[tokio::test]
async fn actors_differ_by_kind_and_casing() {
    let server = Server::start().await;
    set_value(&server, "/a", "x").await;
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

/// Every request that changes permissions on a path; the deletion by id is last.
fn changes(path: &str, id: &str) -> Vec<(Method, String, Value)> {
    let by_name = format!("{BY_CREDENTIAL}?credential_name={path}&actor=third");
    vec![
        (
            Method::POST,
            PERMISSIONS.to_owned(),
            permission(path, "third", &["read"]),
        ),
        (Method::DELETE, by_name, Value::Null),
        (
            Method::POST,
            BY_CREDENTIAL.to_owned(),
            on_credential(path, "third", &["read"]),
        ),
        (
            Method::PUT,
            address(id),
            permission(path, "other", &["write"]),
        ),
        (
            Method::PATCH,
            address(id),
            json!({"operations": ["delete"]}),
        ),
        (Method::DELETE, address(id), Value::Null),
    ]
}

/// Every request that reads or changes permissions on a path.
fn requests(path: &str, id: &str) -> Vec<(Method, String, Value)> {
    let mut requests = changes(path, id);
    for asked in [
        address(id),
        query(path, "other"),
        format!("{BY_CREDENTIAL}?credential_name={path}"),
        format!("{PERMISSIONS}/explain?path={path}&actor=other&operation=read"),
    ] {
        requests.push((Method::GET, asked, Value::Null));
    }
    requests
}

/// Every request that changes the permission of a caller on a path.
fn changes_of(caller: &Caller, path: &str, id: &str) -> Vec<(Method, String, Value)> {
    let actor = caller.actor();
    let by_name = format!("{BY_CREDENTIAL}?credential_name={path}&actor={actor}");
    let body = permission(path, actor, &["read"]);
    vec![
        (Method::POST, PERMISSIONS.to_owned(), body.clone()),
        (Method::PUT, address(id), body),
        (Method::PATCH, address(id), json!({"operations": ["read"]})),
        (Method::DELETE, address(id), Value::Null),
        (
            Method::POST,
            BY_CREDENTIAL.to_owned(),
            on_credential(path, actor, &["read"]),
        ),
        (Method::DELETE, by_name, Value::Null),
    ]
}
