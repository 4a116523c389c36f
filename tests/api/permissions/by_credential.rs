//! `/api/v1/permissions`: the older interface for permissions, by the name of a credential.

use keywright_harness::Server;
use serde_json::{Value, json};

use super::{
    BY_CREDENTIAL, by_name, client_with, on_credential, operations, permission, query, stored,
};
use crate::given::assert_refused;

// `POST /api/v1/permissions`.

#[tokio::test]
async fn adding_responds_with_an_empty_body() {
    let server = Server::reused().await;
    let body = on_credential("a/b", "someone", &["write", "read", "read"]);
    let response = server.post(BY_CREDENTIAL, body).await.expect(201);
    assert_eq!(response.body, "");
    let actual = operations(&server, "/a/b", "someone").await;
    assert_eq!(actual, json!(["read", "write"]));
}

#[tokio::test]
async fn operations_are_added_to_existing_ones() {
    let server = Server::reused().await;
    let id = server.grant("/a", "someone", &["delete"]).await;
    for (given, actual) in [
        (&["read"][..], json!(["read", "delete"])),
        (
            &["read", "write_acl"],
            json!(["read", "delete", "write_acl"]),
        ),
    ] {
        let body = on_credential("/a", "someone", given);
        server.post(BY_CREDENTIAL, body).await.expect(201);
        let permission = stored(&server, "/a", "someone").await.unwrap();
        assert_eq!(permission["operations"], actual);
        assert_eq!(permission["uuid"], id);
    }
}

#[tokio::test]
async fn an_already_granted_operation_is_refused() {
    let server = Server::reused().await;
    server.set_value("/a/b", "x").await;
    server.grant("/a/b", "someone", &["read"]).await;
    server.grant("/a/*", "someone", &["write"]).await;
    server.grant("/*", "someone", &["delete"]).await;
    for (name, actor, given, status) in [
        ("/a/b", "someone", &["read"][..], 409),
        ("/a/b", "someone", &["write"], 409),
        ("/a/b", "someone", &["delete", "read"], 409),
        ("/a/b", "someone", &["read", "write", "delete"], 409),
        ("/a/*", "someone", &["delete"], 409),
        ("/c", "someone", &["delete"], 409),
        ("/a/*", "someone", &["read"], 201),
        ("/A/b", "someone", &["read"], 201),
        ("/a/b", "Someone", &["read"], 201),
        ("/a/b", "someone", &["read", "read_acl"], 201),
        ("/a/b", "someone", &["read_acl"], 409),
    ] {
        let body = on_credential(name, actor, given);
        server.post(BY_CREDENTIAL, body).await.expect(status);
    }
    let actual = operations(&server, "/a/b", "someone").await;
    assert_eq!(actual, json!(["read", "read_acl"]));
}

#[tokio::test]
async fn several_permissions_are_added_atomically() {
    let server = Server::reused().await;
    let entries = |entries: &[(&str, &[&str])]| {
        let permissions = entries
            .iter()
            .map(|(actor, operations)| permission("/a", actor, operations));
        json!({"credential_name": "/a", "permissions": permissions.collect::<Vec<_>>()})
    };
    let body = entries(&[
        ("one", &["read"]),
        ("two", &["write"]),
        ("one", &["delete"]),
    ]);
    server.post(BY_CREDENTIAL, body).await.expect(201);
    let one = operations(&server, "/a", "one").await;
    assert_eq!(one, json!(["read", "delete"]));
    assert_eq!(operations(&server, "/a", "two").await, json!(["write"]));
    for (body, status) in [
        (entries(&[("three", &["read"]), ("two", &["write"])]), 409),
        (
            entries(&[("three", &["read"]), ("uaa-client:developer", &["read"])]),
            400,
        ),
        (entries(&[("three", &["read"]), ("two", &["execute"])]), 422),
        (entries(&[("three", &["read"]), ("", &["read"])]), 400),
    ] {
        server.post(BY_CREDENTIAL, body).await.expect(status);
        assert_eq!(stored(&server, "/a", "three").await, None);
    }
}

#[tokio::test]
async fn an_invalid_body_is_refused() {
    let server = Server::reused().await;
    let long = "x".repeat(256);
    assert_refused(&server, &INVALID_BODIES.replace("{long}", &long)).await;
    assert_eq!(stored(&server, "/a", "someone").await, None);
}

const INVALID_BODIES: &str = r#"
    400 POST /api/v1/permissions {}
    400 POST /api/v1/permissions []
    400 POST /api/v1/permissions {"credential_name": "/a"}
    400 POST /api/v1/permissions {"permissions": [{"path": "/a", "actor": "someone", "operations": ["read"]}]}
    400 POST /api/v1/permissions {"credential_name": "/a", "permissions": []}
    400 POST /api/v1/permissions {"credential_name": "/a", "permissions": null}
    400 POST /api/v1/permissions {"credential_name": "/a", "permissions": {"path": "/a", "actor": "someone", "operations": ["read"]}}
    400 POST /api/v1/permissions {"credential_name": "/a", "permissions": [null]}
    400 POST /api/v1/permissions {"credential_name": "/a", "permissions": ["x"]}
    400 POST /api/v1/permissions {"credential_name": "/a", "permissions": [{}]}
    400 POST /api/v1/permissions {"credential_name": null, "permissions": [{"path": "/a", "actor": "someone", "operations": ["read"]}]}
    400 POST /api/v1/permissions {"credential_name": "", "permissions": [{"path": "", "actor": "someone", "operations": ["read"]}]}
    400 POST /api/v1/permissions {"credential_name": "/", "permissions": [{"path": "/", "actor": "someone", "operations": ["read"]}]}
    400 POST /api/v1/permissions {"credential_name": "/a/", "permissions": [{"path": "/a/", "actor": "someone", "operations": ["read"]}]}
    400 POST /api/v1/permissions {"credential_name": "/a*", "permissions": [{"path": "/a*", "actor": "someone", "operations": ["read"]}]}
    400 POST /api/v1/permissions {"credential_name": "/a b", "permissions": [{"path": "/a b", "actor": "someone", "operations": ["read"]}]}
    400 POST /api/v1/permissions {"credential_name": "{long}", "permissions": [{"path": "{long}", "actor": "someone", "operations": ["read"]}]}
    400 POST /api/v1/permissions {"credential_name": ["/a"], "permissions": [{"path": "/a", "actor": "someone", "operations": ["read"]}]}
    400 POST /api/v1/permissions {"credential_name": "/a", "permissions": [{"path": "/a", "actor": "someone", "operations": null}]}
    400 POST /api/v1/permissions {"credential_name": "/a", "permissions": [{"path": "/a", "actor": "someone", "operations": []}]}
    400 POST /api/v1/permissions {"credential_name": "/a", "permissions": [{"path": "/a", "actor": "someone", "operations": "read"}]}
    422 POST /api/v1/permissions {"credential_name": "/a", "permissions": [{"path": "/a", "actor": "someone", "operations": ["execute"]}]}
    400 POST /api/v1/permissions {"credential_name": "/a", "permissions": [{"path": "/a", "actor": null, "operations": ["read"]}]}
    400 POST /api/v1/permissions {"credential_name": "/a", "permissions": [{"path": "/a", "actor": "", "operations": ["read"]}]}
    400 POST /api/v1/permissions {"credential_name": "/a", "permissions": [{"path": "/a", "actor": "{long}", "operations": ["read"]}]}
    422 POST /api/v1/permissions {"credential_name": "/a", "permissions": [{"path": "/a", "actor": "someone", "operations": ["read"], "uuid": "x"}]}
    422 POST /api/v1/permissions {"credential_name": "/a", "permissions": [{}, {"path": "/a", "uuid": "x"}]}
    422 POST /api/v1/permissions {"credential_name": "/a", "permissions": [{"path": "/a", "actor": "someone", "operations": ["read"]}], "mode": "x"}
"#;

#[tokio::test]
async fn more_than_100_entries_are_400() {
    let server = Server::reused().await;
    for (count, status) in [(101, 400), (100, 201)] {
        let entries = (0..count).map(|number| permission("/a", &format!("x{number}"), &["read"]));
        let entries: Vec<_> = entries.collect();
        let body = json!({"credential_name": "/a", "permissions": entries});
        server.post(BY_CREDENTIAL, body).await.expect(status);
        let last = stored(&server, "/a", "x99").await;
        assert_eq!(last.is_some(), status == 201);
    }
}

#[tokio::test]
async fn write_acl_is_needed_on_the_name_as_requested() {
    let server = Server::reused().await;
    server.set_value("/Some/name", "x").await;
    let writer = client_with(&server, "/some/*", &["write_acl"]).await;
    for (name, status) in [("/some/name", 201), ("/Some/name", 404), ("/some", 404)] {
        let body = on_credential(name, "other", &["read"]);
        writer.post(BY_CREDENTIAL, body).await.expect(status);
        let is_stored = stored(&server, name, "other").await.is_some();
        assert_eq!(is_stored, status == 201);
    }
}

// `GET /api/v1/permissions`.

#[tokio::test]
async fn only_permissions_on_exactly_the_name_are_listed() {
    let server = Server::reused().await;
    server.set_value("/Some/name", "x").await;
    for (path, actor, operations) in [
        ("/Some/name", "z", &["write", "read"][..]),
        ("/some/name", "other-casing", &["read"]),
        ("/Some/*", "inherited", &["read"]),
        ("/*", "inherited", &["read"]),
        ("/Some/name/below", "below", &["read"]),
        ("/Some/name/*", "below", &["read"]),
        ("/Some/name", "two", &["delete"]),
    ] {
        server.grant(path, actor, operations).await;
    }
    for requested in ["/Some/name", "/some/NAME", "Some/name", "%2Fsome%2Fname"] {
        let response = list(&server, requested).await;
        let expected = json!({
            "credential_name": "/Some/name",
            "permissions": [
                {"actor": "z", "path": "/Some/name", "operations": ["read", "write"]},
                {"actor": "two", "path": "/Some/name", "operations": ["delete"]},
            ],
        });
        assert_eq!(response, expected, "{requested}");
    }
}

#[tokio::test]
async fn a_list_has_at_most_1000_permissions() {
    let server = Server::reused().await;
    server.set_value("/a", "x").await;
    for hundred in 0..10 {
        let entries =
            (0..100).map(|number| permission("/a", &format!("{hundred}-{number}"), &["read"]));
        let body = json!({"credential_name": "/a", "permissions": entries.collect::<Vec<_>>()});
        server.post(BY_CREDENTIAL, body).await.expect(201);
    }
    let listed = list(&server, "/a").await;
    assert_eq!(listed["permissions"].as_array().unwrap().len(), 1_000);

    server.grant("/a", "one too many", &["read"]).await;
    let refused = server.get(&by_name("/a")).await.expect(413).error();
    let error = "the credential has more than 1000 permissions, the limit of a list";
    assert_eq!(refused, error);
}

#[tokio::test]
async fn a_name_with_permissions_but_no_credential_is_not_found() {
    let server = Server::reused().await;
    server.grant("/a", "one", &["read"]).await;
    server.grant("/a/*", "one", &["read"]).await;
    for name in ["/a", "/a/*", "/*", "*", "/", "//a", "/a%20b", "/%00"] {
        server.get(&by_name(name)).await.expect(404).error();
    }
    server.set_value("/a", "x").await;
    let listed = list(&server, "/a").await;
    assert_eq!(listed["permissions"][0]["actor"], "one");
}

#[tokio::test]
async fn read_acl_is_needed_on_the_requested_and_the_stored_casing() {
    let server = Server::reused().await;
    server.set_value("/Some/name", "x").await;
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
        for (requested, is_allowed) in [("/Some/name", as_stored), ("/some/name", in_lower_case)] {
            let status = if is_allowed { 200 } else { 404 };
            let response = reader.get(&by_name(requested)).await;
            assert_eq!(response.status, status, "{path} {requested}: {response:?}");
            if is_allowed {
                assert_eq!(response.json()["credential_name"], "/Some/name", "{path}");
            }
        }
        let own = server.get(&super::query(path, reader.actor())).await;
        server.revoke(own.json()["uuid"].as_str().unwrap()).await;
    }
}

async fn list(server: &Server, name: &str) -> Value {
    server.get_json(&by_name(name)).await
}

// `DELETE /api/v1/permissions`.

#[tokio::test]
async fn deleting_removes_all_operations_and_has_an_empty_body() {
    let server = Server::reused().await;
    server.set_value("/a/b", "x").await;
    for (name, requested, actor, requested_actor) in [
        ("/a/b", "/a/b", "someone", "someone"),
        ("/gone", "gone", "some one", "some%20one"),
        ("/c/*", "%2Fc%2F%2A", "uaa-client:x", "uaa-client%3Ax"),
        ("/*", "*", "someone", "someone"),
    ] {
        server.grant(name, actor, &["read", "write"]).await;
        server.grant(name, "other", &["read"]).await;
        let address = format!("{}&actor={requested_actor}", by_name(requested));
        let response = server.delete(&address).await.expect(204);
        assert_eq!(response.body, "");
        let gone = query(requested, requested_actor);
        server.get(&gone).await.expect(404);
        let other = stored(&server, requested, "other").await;
        assert!(other.is_some(), "{name}");
        server.delete(&address).await.expect(404);
    }
}

#[tokio::test]
async fn a_delete_needs_the_exact_path_and_actor() {
    let server = Server::reused().await;
    server.set_value("/Some/name", "x").await;
    server.grant("/Some/name", "someone", &["read"]).await;
    server.grant("/Some/*", "someone", &["read"]).await;
    for (name, actor) in [
        ("/some/name", "someone"),
        ("/Some/name", "Someone"),
        ("/Some/other", "someone"),
        ("/Some", "someone"),
        ("/*", "someone"),
        ("/Some/name/", "someone"),
        ("/", "someone"),
        ("/%00", "%00"),
    ] {
        let address = format!("{}&actor={actor}", by_name(name));
        server.delete(&address).await.expect(404).error();
    }
    for path in ["/Some/name", "/Some/*"] {
        assert!(stored(&server, path, "someone").await.is_some(), "{path}");
    }
}

#[tokio::test]
async fn exactly_one_name_and_actor_are_required() {
    let server = Server::reused().await;
    let refused = "
        400 GET /api/v1/permissions => credential_name
        400 GET /api/v1/permissions?credential_name= => credential_name
        400 GET /api/v1/permissions?credential_name=a&credential_name=b => credential_name
        400 GET /api/v1/permissions?name=/a => credential_name
        400 DELETE /api/v1/permissions => credential_name
        400 DELETE /api/v1/permissions?credential_name=/a => actor
        400 DELETE /api/v1/permissions?actor=x => credential_name
        400 DELETE /api/v1/permissions?credential_name=&actor=x => credential_name
        400 DELETE /api/v1/permissions?credential_name=/a&actor= => actor
        400 DELETE /api/v1/permissions?credential_name=/a&actor=x&actor=x => actor
    ";
    assert_refused(&server, refused).await;
}
