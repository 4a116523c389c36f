//! Information about the server: health, identity provider, version, types, and use of encryption keys.

use keywright_harness::{Options, Server};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    encryption_keys::{usage, used, with_keys},
    given,
};

// GET /health

#[tokio::test]
async fn a_healthy_server_reports_up_with_any_token() {
    let server = Server::reused().await;
    let expected = json!({"status": "UP"});
    assert_open_with_any_token(&server, "/health", &expected).await;
}

// GET /info

#[tokio::test]
async fn info_has_provider_and_application_with_any_token() {
    let server = Server::reused().await;
    let url = format!("{}/identity", server.base_url());
    let expected = json!({"auth-server": {"url": url}, "app": {"name": "Keywright"}});
    assert_open_with_any_token(&server, "/info", &expected).await;
}

/// Asserts the response to requests with a valid token, with invalid ones, and without one.
async fn assert_open_with_any_token(server: &Server, path: &str, expected: &Value) {
    assert_eq!(server.get_json(path).await, *expected);
    for authorization in ["Bearer x", "Bearer ", "Basic eDp5", "x", ""] {
        let mut request = server.request(Method::GET, path);
        if !authorization.is_empty() {
            request = request.header("authorization", authorization);
        }
        let response = server.send(request).await.expect(200);
        assert_eq!(response.json(), *expected, "{path} {authorization}");
    }
}

#[tokio::test]
async fn the_application_name_is_configurable() {
    let server = Server::start_with(&Options::default().extra("[info]\nname = \"Vault 7\"")).await;
    let response = server.get("/info").await;
    assert_eq!(response.expect(200).json()["app"]["name"], "Vault 7");
}

// GET /version

#[tokio::test]
async fn the_version_is_the_api_level_and_needs_a_token() {
    let server = Server::reused().await;
    let response = server.get("/version").await.expect(200);
    assert_eq!(response.json(), json!({"version": "2.15.0"}));
    let response = server.send(server.request(Method::GET, "/version")).await;
    assert_eq!(response.expect(401).error(), "access_denied");
}

#[tokio::test]
async fn the_api_level_is_configurable() {
    let options = Options::default().extra("[info]\napi_version = \"2.9.0\"");
    let server = Server::start_with(&options).await;
    let response = server.get("/version").await;
    assert_eq!(response.expect(200).json()["version"], "2.9.0");
}

// GET /api/v1/key-usage

#[tokio::test]
async fn an_empty_store_uses_no_key() {
    let server = Server::reused().await;
    let response = server.get("/api/v1/key-usage").await.expect(200);
    assert_eq!(
        response.body,
        r#"{"active_key":0,"inactive_keys":0,"unknown_keys":0}"#
    );
}

#[tokio::test]
async fn versions_of_every_type_are_counted_until_deleted() {
    let server = Server::reused().await;
    server.set_value("/v", "1").await;
    server.set_value("/v", "2").await;
    server.issued("/c", json!({"self_sign": true})).await;
    // A value without a private key is encrypted too.
    server.stored("/r", "rsa", json!({"public_key": "p"})).await;
    server.generated("/u", "user", json!({})).await;
    assert_eq!(usage(&server).await, used(5, 0, 0));
    server.delete("/api/v1/data?name=/v").await.expect(204);
    assert_eq!(usage(&server).await, used(3, 0, 0));
}

#[tokio::test]
async fn versions_are_counted_by_the_current_state_of_their_key() {
    let server = Server::start_with(&with_keys(&["KEY_A"])).await;
    for text in ["1", "2", "3"] {
        server.set_value("/a", text).await;
    }
    assert_eq!(usage(&server).await, used(3, 0, 0));

    // A new key is active; the old one is still configured.
    let server = Server::start_in(server.stop().await, &with_keys(&["KEY_B", "KEY_A"])).await;
    assert_eq!(usage(&server).await, used(0, 3, 0));
    server.set_value("/a", "4").await;
    server.set_value("/b", "1").await;
    assert_eq!(usage(&server).await, used(2, 3, 0));

    // The old key is no longer configured. A key that was never active is configured instead.
    let server = Server::start_in(server.stop().await, &with_keys(&["KEY_B", "KEY_C"])).await;
    assert_eq!(usage(&server).await, used(2, 0, 3));

    // A third key is active, and both others count as inactive.
    let all = with_keys(&["KEY_C", "KEY_A", "KEY_B"]);
    let server = Server::start_in(server.stop().await, &all).await;
    assert_eq!(usage(&server).await, used(0, 5, 0));
    server.set_value("/c", "1").await;
    assert_eq!(usage(&server).await, used(1, 5, 0));
}

// GET /api/v1/types

async fn types(server: &Server) -> Vec<Value> {
    let response = server.get_json(TYPES).await;
    response["types"].as_array().unwrap().clone()
}

fn named<'a>(types: &'a [Value], name: &str) -> &'a Value {
    types.iter().find(|listed| listed["name"] == name).unwrap()
}

#[tokio::test]
async fn set_only_types_come_first_then_configured_ones() {
    let server = Server::start().await;
    let expected = [
        "value",
        "json",
        "certificate",
        "password",
        "rsa",
        "ssh",
        "user",
    ];
    assert_eq!(given::names(&types(&server).await), expected);
    let server = Server::start_with(&Options::default().without_plugins()).await;
    assert_eq!(given::names(&types(&server).await), ["value", "json"]);
}

#[tokio::test]
async fn types_without_a_plugin_have_no_parameters() {
    let server = Server::reused().await;
    let types = types(&server).await;
    for (name, kind) in [("value", "string"), ("json", "object")] {
        let listed = named(&types, name);
        assert_eq!(listed["plugin"], Value::Null);
        assert_eq!(listed["parameters"], Value::Null);
        assert_eq!(listed["value"]["type"], kind);
        assert_eq!(listed["value"]["writeOnly"], true);
        assert!(!listed["summary"].as_str().unwrap().is_empty());
    }
}

#[tokio::test]
async fn a_type_has_the_schemas_of_its_plugin() {
    let server = Server::reused().await;
    let types = types(&server).await;
    let password = named(&types, "password");
    let fields: Vec<_> = password.as_object().unwrap().keys().collect();
    assert_eq!(fields, ["name", "summary", "plugin", "parameters", "value"]);
    let parameters = &password["parameters"];
    assert_eq!(parameters["type"], "object");
    assert_eq!(parameters["properties"]["length"]["default"], 30);
    assert_eq!(password["value"]["type"], "string");
    let certificate = named(&types, "certificate");
    assert_eq!(
        certificate["parameters"]["properties"]["kept"]["readOnly"],
        true
    );
    let key = &certificate["value"]["properties"]["private_key"];
    assert_eq!(key["writeOnly"], true);
}

#[tokio::test]
async fn a_type_names_the_digest_of_its_plugin() {
    let server =
        Server::start_with(&Options::default().plugin("wireguard", "wireguard", &["random"], ""))
            .await;
    let types = types(&server).await;
    let wireguard = named(&types, "wireguard");
    assert_eq!(wireguard["plugin"]["name"], "wireguard");
    let digest = wireguard["plugin"]["digest"].as_str().unwrap();
    assert_eq!(digest.len(), 64);
    assert!(server.log().contains(digest));
    let parameter = &wireguard["parameters"]["properties"]["preshared_key"];
    assert_eq!(parameter["type"], "boolean");
}

const TYPES: &str = "/api/v1/types";
