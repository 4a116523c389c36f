//! `GET /api/v1/permissions`.

use keywright_harness::Server;
use serde_json::{Value, json};

use super::super::{BY_CREDENTIAL, client_with};
use crate::given::set_value;

#[tokio::test]
async fn the_permissions_on_exactly_the_credentials_name_are_listed() {
    let server = Server::start().await;
    set_value(&server, "/Some/name", "x").await;
    for (path, actor, operations) in [
        ("/Some/name", "one", &["write", "read"][..]),
        ("/some/name", "other-casing", &["read"]),
        ("/Some/*", "inherited", &["read"]),
        ("/*", "inherited", &["read"]),
        ("/Some/name/below", "below", &["read"]),
        ("/Some/name/*", "below", &["read"]),
        ("/Some/name", "two", &["delete"]),
    ] {
        server.grant(path, actor, operations).await;
    }
    for asked in ["/Some/name", "/some/NAME", "Some/name", "%2Fsome%2Fname"] {
        let answer = list(&server, asked).await;
        let expected = json!({
            "credential_name": "/Some/name",
            "permissions": [
                {"actor": "one", "path": "/Some/name", "operations": ["read", "write"]},
                {"actor": "two", "path": "/Some/name", "operations": ["delete"]},
            ],
        });
        assert_eq!(answer, expected, "{asked}");
    }
}

#[tokio::test]
async fn a_credential_without_permissions_has_an_empty_list() {
    let server = Server::start().await;
    set_value(&server, "/a", "x").await;
    let expected = json!({"credential_name": "/a", "permissions": []});
    assert_eq!(list(&server, "/a").await, expected);
}

#[tokio::test]
async fn a_name_with_permissions_but_no_credential_is_not_found() {
    let server = Server::start().await;
    server.grant("/a", "one", &["read"]).await;
    server.grant("/a/*", "one", &["read"]).await;
    for name in ["/a", "/a/*", "/*", "*", "/", "//a", "/a%20b", "/%00"] {
        let path = format!("{BY_CREDENTIAL}?credential_name={name}");
        let answer = server.get(&path).await.expect(404);
        assert!(!answer.error().is_empty(), "{name}");
    }
    set_value(&server, "/a", "x").await;
    let listed = list(&server, "/a").await;
    assert_eq!(listed["permissions"][0]["actor"], "one");
}

#[tokio::test]
async fn the_name_is_required_once() {
    let server = Server::start().await;
    for asked in [
        "",
        "?credential_name=",
        "?credential_name=a&credential_name=b",
        "?name=/a",
    ] {
        let answer = server
            .get(&format!("{BY_CREDENTIAL}{asked}"))
            .await
            .expect(400);
        assert!(answer.error().contains("credential_name"), "{asked}");
    }
}

#[tokio::test]
async fn read_acl_is_needed_on_the_requested_and_the_stored_casing() {
    let server = Server::start().await;
    set_value(&server, "/Some/name", "x").await;
    for (path, as_stored, in_lower_case) in [
        ("/Some/name", true, false),
        ("/Some/*", true, false),
        ("/*", true, true),
        ("/some/name", false, false),
        ("/some/*", false, false),
        ("/Some/name/*", false, false),
        ("/Some", false, false),
    ] {
        let reader = client_with(&server, path, &["read_acl"]).await;
        for (asked, is_allowed) in [("/Some/name", as_stored), ("/some/name", in_lower_case)] {
            let address = format!("{BY_CREDENTIAL}?credential_name={asked}");
            let status = if is_allowed { 200 } else { 404 };
            let answer = reader.get(&address).await;
            assert_eq!(answer.status, status, "{path} {asked}: {answer:?}");
            if is_allowed {
                assert_eq!(answer.json()["credential_name"], "/Some/name", "{path}");
            }
        }
        let own = server.get(&super::super::query(path, reader.actor())).await;
        server.revoke(own.json()["uuid"].as_str().unwrap()).await;
    }
}

#[tokio::test]
async fn without_read_acl_a_name_looks_absent() {
    let server = Server::start().await;
    set_value(&server, "/a", "x").await;
    let stranger = client_with(&server, "/*", &["read", "write", "delete", "write_acl"]).await;
    let address = |name| format!("{BY_CREDENTIAL}?credential_name={name}");
    let refused = stranger.get(&address("/a")).await.expect(404);
    let absent = stranger.get(&address("/b")).await.expect(404);
    let gone = server.get(&address("/b")).await.expect(404);
    assert_eq!(refused.body, absent.body);
    assert_eq!(refused.body, gone.body);
}

async fn list(server: &Server, name: &str) -> Value {
    let path = format!("{BY_CREDENTIAL}?credential_name={name}");
    server.get(&path).await.expect(200).json()
}
