//! Requests that must succeed, and their responses.

use std::fs;

use keywright_harness::{Response, Server, key_file};
use reqwest::{Certificate, Client, ClientBuilder, Method, header::CONTENT_TYPE};
use serde_json::{Value, json};

/// Sets a credential of type value and returns its version.
pub(crate) async fn set_value(server: &Server, name: &str, text: &str) -> Value {
    set(server, name, "value", json!(text)).await
}

/// Sets a credential and returns its version.
pub(crate) async fn set(server: &Server, name: &str, credential_type: &str, value: Value) -> Value {
    server
        .set(name, credential_type, value)
        .await
        .expect(200)
        .json()
}

/// Generates a credential and returns its version.
pub(crate) async fn generate(
    server: &Server,
    name: &str,
    credential_type: &str,
    parameters: Value,
) -> Value {
    let response = server.generate(name, credential_type, parameters).await;
    response.expect(200).json()
}

/// Generates a certificate and returns its version. The common name defaults to its name, and the key to a quickly
/// generated type.
pub(crate) async fn generate_certificate(
    server: &Server,
    name: &str,
    mut parameters: Value,
) -> Value {
    let fields = parameters.as_object_mut().unwrap();
    for (field, value) in [("common_name", name), ("key_type", QUICK_KEY)] {
        fields.entry(field).or_insert_with(|| json!(value));
    }
    generate(server, name, "certificate", parameters).await
}

/// Parses a table of requests, one per line: the expected status, the method, the target, and an optional body.
/// Lines that start with `#` are comments.
pub(crate) fn requests(table: &str) -> Vec<(u16, Method, String, Value)> {
    let lines = table.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    let request = |line: &str| {
        let mut parts = line.splitn(4, ' ');
        let mut part = || parts.next().unwrap_or_default();
        let (status, method, target) = (part(), part(), part().to_owned());
        let body = match part() {
            "" => Value::Null,
            body => serde_json::from_str(body).unwrap(),
        };
        (
            status.parse().unwrap(),
            method.parse().unwrap(),
            target,
            body,
        )
    };
    lines.map(request).collect()
}

/// Sends a request, without a body if it is null.
pub(crate) async fn send(server: &Server, method: Method, path: &str, body: &Value) -> Response {
    let mut request = server.authorized(method, path);
    if !body.is_null() {
        request = request.body(body.to_string());
    }
    server.send(request).await
}

/// Returns a client that trusts the test servers, with additional settings.
pub(crate) fn client(settings: impl FnOnce(ClientBuilder) -> ClientBuilder) -> Client {
    let authority = fs::read(key_file("ca.pem")).unwrap();
    let trusted = [Certificate::from_pem(&authority).unwrap()];
    let builder = Client::builder().tls_certs_only(trusted).no_proxy();
    settings(builder).build().unwrap()
}

/// Returns an access token of the development user.
pub(crate) async fn user_token(server: &Server) -> String {
    let form = "grant_type=password&client_id=credhub_cli&client_secret=&username=developer\
                &password=developer-password";
    let request = server
        .request(Method::POST, "/identity/oauth/token")
        .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body(form);
    let granted = server.send(request).await.expect(200).json();
    granted["access_token"].as_str().unwrap().to_owned()
}

/// Stores a credential of each type below a path: `PATH/value`, `PATH/json`, and so on.
pub(crate) async fn every_type(server: &Server, path: &str) {
    set_value(server, &format!("{path}/value"), "v").await;
    set(
        server,
        &format!("{path}/json"),
        "json",
        json!({"k": [1, "ä"]}),
    )
    .await;
    for credential_type in ["password", "user", "rsa", "ssh", "certificate"] {
        let parameters = match credential_type {
            "certificate" => json!({"common_name": "c", "self_sign": true}),
            _ => json!({}),
        };
        let name = format!("{path}/{credential_type}");
        generate(server, &name, credential_type, parameters).await;
    }
}

/// Returns the newest version of a credential.
pub(crate) async fn newest(server: &Server, name: &str) -> Value {
    versions(server, name).await[0].clone()
}

/// Returns all versions of an existing credential, newest first.
pub(crate) async fn versions(server: &Server, name: &str) -> Vec<Value> {
    let response = server.get(&format!("/api/v1/data?name={name}")).await;
    versions_in(&response.expect(200))
}

/// Returns all versions of all credentials, the most recently written credential first.
pub(crate) async fn all_versions(server: &Server) -> Vec<Value> {
    let mut all = Vec::new();
    for name in found_names(server, "path=").await {
        all.extend(versions(server, &name).await);
    }
    all
}

/// Returns the versions in the response to a query by name.
pub(crate) fn versions_in(response: &Response) -> Vec<Value> {
    response.json()["data"].as_array().unwrap().clone()
}

/// Returns the names in the response to a search, in their order.
pub(crate) async fn found_names(server: &Server, query: &str) -> Vec<String> {
    let response = server
        .get(&format!("/api/v1/data?{query}"))
        .await
        .expect(200);
    response.json()["credentials"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["name"].as_str().unwrap().to_owned())
        .collect()
}

/// Returns the keys of an object, in order.
pub(crate) fn fields(json: &Value) -> Vec<&str> {
    json.as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect()
}

pub(crate) fn id(version: &Value) -> String {
    version["id"].as_str().unwrap().to_owned()
}

/// A quickly generated key type, for tests that do not depend on the type.
pub(crate) const QUICK_KEY: &str = "ecdsa-p256";
