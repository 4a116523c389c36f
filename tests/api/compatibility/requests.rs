//! Permissions, transitional flags, unknown fields, depth, and the identity provider's address.

use keywright_harness::{Caller, Options, Response, Server, Text};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{given, permissions::operations};

// Requests of Spring CredHub.

#[tokio::test]
async fn v1_entry_without_path_applies_to_credential_name() {
    let server = Server::reused().await;
    for (name, path, actor) in [
        ("/a/b", "/a/b", "one"),
        ("a/b", "/a/b", "two"),
        ("/a/*", "/a/*", "three"),
    ] {
        let entry = json!({"actor": actor, "operations": ["read", "write"]});
        add(&server, name, entry, 201).await;
        let actual = operations(&server, path, actor).await;
        assert_eq!(actual, json!(["read", "write"]));
    }
    let entry = json!({"path": null, "actor": "four", "operations": ["read"]});
    add(&server, "/a/b", entry, 201).await;
    assert_eq!(operations(&server, "/a/b", "four").await, json!(["read"]));
}

#[tokio::test]
async fn v1_entry_path_must_equal_credential_name() {
    let server = Server::reused().await;
    for (name, path, status) in [
        ("/a/b", json!("/a/b"), 201),
        ("c", json!("/c"), 201),
        ("/d", json!("d"), 201),
        ("*", json!("/*"), 201),
        ("/e", json!(""), 400),
        ("/e", json!("/E"), 400),
        ("/e", json!("/f"), 400),
        ("/e", json!("/e/*"), 400),
        ("/e", json!("/*"), 400),
        ("/e", json!("/e/"), 400),
        ("/e", json!(7), 400),
    ] {
        let actor = format!("on-{name}");
        let entry = json!({"path": path, "actor": actor, "operations": ["read"]});
        add(&server, name, entry, status).await;
    }
    assert_eq!(operations(&server, "/e", "on-/e").await, Value::Null);
}

/// Adds one permission on a credential, through `/api/v1/permissions`.
async fn add(server: &Server, name: &str, entry: Value, status: u16) {
    let body = json!({"credential_name": name, "permissions": [entry]});
    let response = server.post("/api/v1/permissions", body).await;
    let response = response.expect(status);
    if status == 400 {
        response.expect_error(400, "path");
    }
}

// Unknown fields, deep bodies, and tokens that need not be valid.

/// Every request whose body has a fixed set of fields, and the status for an unknown field.
pub(crate) const TYPED_REQUESTS: &str = "
    422 PUT /api/v1/data
    400 POST /api/v1/data
    422 POST /api/v1/regenerate
    422 POST /api/v1/bulk-regenerate
    422 POST /api/v1/certificates/8ffd2a43-0ba6-44cf-8b55-e2e9ba2cb9e9/regenerate
    422 PUT /api/v1/certificates/8ffd2a43-0ba6-44cf-8b55-e2e9ba2cb9e9/update_transitional_version
    422 POST /api/v1/certificates/8ffd2a43-0ba6-44cf-8b55-e2e9ba2cb9e9/versions
    422 POST /api/v2/permissions
    422 PUT /api/v2/permissions/8ffd2a43-0ba6-44cf-8b55-e2e9ba2cb9e9
    422 PATCH /api/v2/permissions/8ffd2a43-0ba6-44cf-8b55-e2e9ba2cb9e9
    422 POST /api/v1/permissions
    422 POST /management
";

async fn caller(server: &Server) -> Caller {
    server.as_client("developer").await
}

/// Returns an object with this many levels, counting the object itself.
fn nested(field: &str, levels: usize) -> String {
    let (open, close) = ("[".repeat(levels - 1), "]".repeat(levels - 1));
    format!(r#"{{"{field}":{open}{close}}}"#)
}

#[tokio::test]
async fn unknown_fields_are_reported_before_missing_ones() {
    let server = Server::reused().await;
    let caller = caller(&server).await;
    for (status, method, path, _) in given::requests(TYPED_REQUESTS) {
        let response = caller.send(method, &path, json!({"unheard_of": 1})).await;
        response.expect_error(status, "unheard_of");
    }
}

#[tokio::test]
async fn every_body_may_have_128_levels() {
    let server = Server::reused().await;
    let caller = caller(&server).await;
    let all = [TYPED_REQUESTS, "200 POST /api/v1/interpolate"].concat();
    for (status, method, path, _) in given::requests(&all) {
        let sent = |levels| {
            let request = caller.request(method.clone(), &path);
            Response::to(request.body(nested("unheard_of", levels)))
        };
        sent(128).await.expect(status);
        for levels in [129, 10_000] {
            let refused = sent(levels).await.expect(400).error();
            refused.assert_contains("more than 128 levels");
        }
    }
}

#[tokio::test]
async fn values_of_128_levels_are_returned_and_resolved() {
    let server = Server::reused().await;
    let put = async |body: String| {
        let request = server.authorized(Method::PUT, "/api/v1/data");
        server.send(request.body(body)).await
    };
    let set = |levels: usize| {
        let value = nested("k", levels - 1);
        format!(r#"{{"name":"/a","type":"json","value":{value}}}"#)
    };
    put(set(129)).await.expect(400);
    put(set(128)).await.expect(200);
    let value = nested("k", 127);
    let read = server.get("/api/v1/data?name=/a").await.expect(200);
    read.assert_contains(&value);
    let document = json!({"s": [{"credentials": {"credhub-ref": "/a"}}]});
    let resolved = server.post("/api/v1/interpolate", document).await;
    let expected = format!(r#"{{"s":[{{"credentials":{value}}}]}}"#);
    assert_eq!(resolved.expect(200).body, expected);

    let metadata = nested("k", 127);
    let with_metadata =
        format!(r#"{{"name":"/b","type":"value","value":"v","metadata":{metadata}}}"#);
    put(with_metadata).await.expect(200);
    let read = server.get("/api/v1/data?name=/b").await.expect(200);
    read.assert_contains(&metadata);
}

// The address of the identity provider.

#[tokio::test]
async fn a_slash_at_the_end_of_the_url_is_dropped() {
    let provider = Server::start().await;
    for slashes in ["", "/", "//"] {
        let url = format!("{}/identity{slashes}", provider.base_url());
        let server = Server::start_with(&Options::default().identity_provider(&url)).await;
        let information = server.get_json("/info").await;
        let shown = &information["auth-server"]["url"];
        assert_eq!(*shown, format!("{}/identity", provider.base_url()));
        let client = provider.as_client("developer").await.at(&server);
        client.get("/version").await.expect(200);
    }
}
