//! Sends the examples of requests.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test ends when what it needs is not there"
)]

use keywright_harness::Server;
use reqwest::Method;
use serde_json::{Value, json};

use crate::given;

/// The operations with a request body, in an order that creates their preconditions.
const ORDER: [(&str, &str); 13] = [
    ("put", "/api/v1/data"),
    ("post", "/api/v1/data"),
    ("post", "/api/v1/regenerate"),
    ("post", "/api/v1/bulk-regenerate"),
    ("post", "/api/v1/interpolate"),
    ("post", "/api/v1/certificates/{certificate_id}/regenerate"),
    (
        "put",
        "/api/v1/certificates/{certificate_id}/update_transitional_version",
    ),
    ("post", "/api/v1/certificates/{certificate_id}/versions"),
    ("post", "/api/v2/permissions"),
    ("put", "/api/v2/permissions/{permission_id}"),
    ("patch", "/api/v2/permissions/{permission_id}"),
    ("post", "/api/v1/permissions"),
    ("post", "/management"),
];

#[tokio::test]
async fn every_example_request_succeeds() {
    let server = Server::start().await;
    let description = server.get("/openapi.json").await.expect(200).json();
    let mut sent = 0;
    for (method, path) in ORDER {
        let operation = &description["paths"][path][method];
        let examples =
            operation["requestBody"]["content"]["application/json"]["examples"].as_object();
        for (name, example) in examples.into_iter().flatten() {
            let target = target(&server, path).await;
            let body = with_ids_that_are_there(&server, path, &example["value"]).await;
            let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
            let request = server.authorized(method, &target).body(body.to_string());
            let answer = server.send(request).await;
            let status = answer.status.to_string();
            assert!(status.starts_with('2'), "{path} {name}: {answer:?}");
            assert!(
                operation["responses"].get(&status).is_some(),
                "{path} {name}: {status}"
            );
            sent += 1;
        }
    }
    assert_eq!(sent, examples_of_requests(&description));
}

/// The number of example requests.
fn examples_of_requests(description: &Value) -> usize {
    let paths = description["paths"].as_object().unwrap().values();
    let operations = paths.flat_map(|path| path.as_object().unwrap().values());
    let examples = operations.map(|operation| {
        operation["requestBody"]["content"]["application/json"]["examples"].as_object()
    });
    examples.flatten().map(serde_json::Map::len).sum()
}

/// A path with the ids of resources that the examples created.
async fn target(server: &Server, path: &str) -> String {
    if path.contains("{certificate_id}") {
        return path.replace("{certificate_id}", &certificate(server).await);
    }
    if path.contains("{permission_id}") {
        let found = "/api/v2/permissions?path=/demo/*&actor=uaa-client:app";
        let found = server.get(found).await.expect(200).json();
        return path.replace("{permission_id}", found["uuid"].as_str().unwrap());
    }
    path.to_owned()
}

async fn certificate(server: &Server) -> String {
    let listed = server.get("/api/v1/certificates?name=/demo/root").await;
    let listed = listed.expect(200).json();
    listed["certificates"][0]["id"].as_str().unwrap().to_owned()
}

/// The example, with ids of this server.
async fn with_ids_that_are_there(server: &Server, path: &str, example: &Value) -> Value {
    let mut body = example.clone();
    if path.ends_with("update_transitional_version") && body["version"].is_string() {
        let versions = given::versions(server, "/demo/root").await;
        body["version"] = json!(versions.last().unwrap()["id"]);
    }
    body
}
