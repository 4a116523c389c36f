//! Bodies, ids, paths and methods of requests below a certificate's path.

use keywright_harness::{Response, Server};
use reqwest::{Method, header};
use serde_json::{Value, json};

use super::{CERTIFICATES, Certificate, ids, requests};
use crate::{audit::events, external_certificates::authority, given};

// Request bodies and response types below a certificate's path.

/// Returns the requests that accept a body, with a valid body.
fn with_a_body(certificate: &Certificate<'_>) -> [(Method, String, Value); 3] {
    let new = json!({"value": {"certificate": authority("new").certificate}});
    [
        (Method::POST, certificate.path("regenerate"), json!({})),
        (Method::POST, certificate.path("versions"), new),
        (
            Method::PUT,
            certificate.path("update_transitional_version"),
            json!({"version": null}),
        ),
    ]
}

async fn given_certificate<'a>(server: &'a Server, name: &str) -> Certificate<'a> {
    let parameters = json!({"common_name": "a", "is_ca": true, "key_type": "ecdsa-p256"});
    Certificate::generate(server, name, parameters).await
}

async fn send(
    server: &Server,
    (method, path): (&Method, &str),
    content_type: Option<&str>,
    body: impl Into<Vec<u8>>,
) -> Response {
    let request = server
        .request(method.clone(), path)
        .bearer_auth(server.token())
        .body(body.into());
    let request = match content_type {
        Some(content_type) => request.header(header::CONTENT_TYPE, content_type),
        None => request,
    };
    server.send(request).await
}

#[tokio::test]
async fn only_a_regeneration_may_omit_the_body() {
    let server = Server::reused().await;
    let certificate = given_certificate(&server, "/a").await;
    for (method, path, _) in with_a_body(&certificate) {
        let to = (&method, path.as_str());
        let response = send(&server, to, Some("application/json"), "").await;
        let is_regeneration = path.ends_with("regenerate");
        let status = if is_regeneration { 200 } else { 400 };
        response.expect(status);
        if is_regeneration {
            send(&server, to, Some("text/plain"), "").await.expect(200);
        }
    }
    assert_eq!(certificate.versions().await.len(), 3);
}

// Unknown ids of certificates, paths and methods.

#[tokio::test]
async fn an_unknown_certificate_id_is_404() {
    let server = Server::reused().await;
    let value = json!({"certificate": authority("root").certificate});
    let certificate = Certificate::set(&server, "/a", value.clone()).await;
    Certificate::set(&server, "/a", value).await;
    let before = certificate.versions().await;
    let version = ids(&before)[0].clone();
    let password = given::set(&server, "/password", "password", json!("p")).await;
    let event = events(&server).pop().unwrap();
    let password_id = event["resource_id"].as_str().unwrap();
    for id in [
        password_id,
        "8ffd2a43-0ba6-44cf-8b55-e2e9ba2cb9e9",
        "00000000-0000-0000-0000-000000000000",
        "no-uuid",
        "%20",
        "%00",
        "%FF",
        "%2Fa",
        &"f".repeat(2_000),
        &version[..35],
        &version,
    ] {
        for request in requests(id, &version) {
            let (method, path, body) = request;
            let response = given::send(&server, method, &path, &body).await;
            response.expect(404).error();
        }
    }
    assert_eq!(certificate.versions().await, before);
    assert_eq!(given::versions(&server, "/password").await, [password]);
}

#[tokio::test]
async fn a_recreated_credential_has_another_id() {
    let server = Server::reused().await;
    let value = json!({"certificate": authority("root").certificate});
    let old = Certificate::set(&server, "/a", value.clone()).await;
    server.delete("/api/v1/data?name=/a").await.expect(204);
    Certificate::set(&server, "/a", value.clone()).await;
    let new = Certificate::set(&server, "/a", value).await;
    assert_ne!(old.id, new.id);
    let before = new.versions().await;
    for (method, path, body) in requests(&old.id, &ids(&before)[0]) {
        let response = given::send(&server, method, &path, &body).await;
        response.expect(404);
    }
    assert_eq!(new.versions().await, before);
}

#[tokio::test]
async fn a_bad_body_is_reported_before_an_absent_certificate() {
    let server = Server::reused().await;
    let path = format!("{CERTIFICATES}/8ffd2a43-0ba6-44cf-8b55-e2e9ba2cb9e9");
    let unknown = json!({"unknown": 1, "version": null, "value": {}});
    for (method, below) in [
        (Method::POST, "regenerate"),
        (Method::POST, "versions"),
        (Method::PUT, "update_transitional_version"),
    ] {
        let response = given::send(&server, method, &format!("{path}/{below}"), &unknown).await;
        response.expect(422).error();
    }
    let versions = format!("{path}/versions?current=maybe");
    server.get(&versions).await.expect(400).error();
}
