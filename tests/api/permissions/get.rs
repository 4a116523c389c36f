//! `GET /api/v2/permissions` and `GET /api/v2/permissions/{permission_id}`.

use keywright_harness::Server;
use serde_json::json;

use super::{PERMISSIONS, UNKNOWN_ID, address, operations, permission, query};

#[tokio::test]
async fn a_permission_is_found_by_its_id_and_by_path_and_actor() {
    let server = Server::start().await;
    for (path, actor, asked_path, asked_actor) in [
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
        let found = server.get(&query(asked_path, asked_actor)).await;
        assert_eq!(found.expect(200).body, by_id.body);
    }
}

#[tokio::test]
async fn the_id_may_be_in_upper_case() {
    let server = Server::start().await;
    let id = server.grant("/a", "someone", &["read"]).await;
    let found = server.get(&address(&id.to_uppercase())).await.expect(200);
    assert_eq!(found.json()["uuid"], id);
}

#[tokio::test]
async fn only_the_permission_on_exactly_this_path_is_found() {
    let server = Server::start().await;
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
        let answer = server.get(&query(path, actor)).await.expect(404);
        assert!(!answer.error().is_empty(), "{path} {actor}");
    }
}

#[tokio::test]
async fn an_unknown_or_malformed_id_is_not_found() {
    let server = Server::start().await;
    for id in [
        UNKNOWN_ID,
        "7",
        "x",
        "%00",
        "explained",
        "0b7f1c52-6f5e-4d43-8f0d-0d5c3c1b9a7",
        "0b7f1c52-6f5e-4d43-8f0d-0d5c3c1b9a77x",
        "%2A",
    ] {
        let answer = server.get(&address(id)).await.expect(404);
        assert!(!answer.error().is_empty(), "{id}");
    }
}

#[tokio::test]
async fn path_and_actor_are_both_required_once() {
    let server = Server::start().await;
    for (asked, named) in [
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
        let answer = server.get(&format!("{PERMISSIONS}{asked}")).await;
        assert_eq!(answer.status, 400, "{asked}: {answer:?}");
        assert!(answer.error().contains(named), "{asked}: {answer:?}");
    }
}

/// Searches for the permission, and adds or replaces it, like the standard command line.
#[tokio::test]
async fn the_standard_client_can_add_and_replace_a_permission() {
    let server = Server::start().await;
    for given in [&["read"][..], &["read", "write"]] {
        let found = server.get(&query("%2Fa%2F%2A", "uaa-client%3Ax")).await;
        let body = permission("/a/*", "uaa-client:x", given);
        if found.status == 404 {
            server.post(PERMISSIONS, body).await.expect(201);
        } else {
            let found = found.expect(200).json();
            let address = address(found["uuid"].as_str().unwrap());
            let replaced = server.put(&address, body).await.expect(200).json();
            assert_eq!(replaced["uuid"], found["uuid"]);
        }
        let kept = operations(&server, "/a/*", "uaa-client:x").await;
        assert_eq!(kept, json!(given));
    }
}
