//! GET /api/v1/types

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test ends when what it needs is not there"
)]

use keywright_harness::{Options, Server, component};
use reqwest::Method;
use serde_json::{Value, json};

use crate::given;

async fn types(server: &Server) -> Vec<Value> {
    let answer = server.get(TYPES).await.expect(200).json();
    answer["types"].as_array().unwrap().clone()
}

fn names(types: &[Value]) -> Vec<&str> {
    let names = types.iter().map(|listed| listed["name"].as_str());
    names.collect::<Option<_>>().unwrap()
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
    assert_eq!(names(&types(&server).await), expected);
    let server = Server::start_with(&Options::default().without_plugins()).await;
    assert_eq!(names(&types(&server).await), ["value", "json"]);
}

#[tokio::test]
async fn types_without_a_plugin_have_no_parameters() {
    let server = Server::start().await;
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
    let server = Server::start().await;
    let types = types(&server).await;
    let password = named(&types, "password");
    let members: Vec<_> = password.as_object().unwrap().keys().collect();
    assert_eq!(
        members,
        ["name", "summary", "plugin", "parameters", "value"]
    );
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
    let section = format!(
        "component = \"{}\"\ngrants = [\"random\"]",
        component("wireguard").display()
    );
    let server = Server::start_with(&Options::default().generator("wireguard", &section)).await;
    let types = types(&server).await;
    let wireguard = named(&types, "wireguard");
    assert_eq!(wireguard["plugin"]["name"], "wireguard");
    let digest = wireguard["plugin"]["digest"].as_str().unwrap();
    assert_eq!(digest.len(), 64);
    assert!(server.log().contains(digest));
    let parameter = &wireguard["parameters"]["properties"]["preshared_key"];
    assert_eq!(parameter["type"], "boolean");
}

#[tokio::test]
async fn exactly_types_with_parameters_can_be_generated() {
    let server = Server::start().await;
    for listed in types(&server).await {
        let name = listed["name"].as_str().unwrap();
        let parameters = match name {
            "certificate" => json!({"common_name": "a", "self_sign": true}),
            _ => json!({}),
        };
        if listed["parameters"].is_null() {
            let refused = server.generate("/a", name, parameters).await;
            refused.expect(400);
        } else {
            given::generate(&server, &format!("/{name}"), name, parameters).await;
        }
    }
}

#[tokio::test]
async fn it_needs_a_token_and_has_no_other_method() {
    let server = Server::start().await;
    let answer = server.send(server.request(Method::GET, TYPES)).await;
    assert_eq!(answer.expect(401).error(), "access_denied");
    for method in [Method::POST, Method::PUT, Method::DELETE, Method::PATCH] {
        let answer = server.send(server.authorized(method, TYPES)).await;
        assert_eq!(answer.expect(404).body, "");
    }
}

const TYPES: &str = "/api/v1/types";
