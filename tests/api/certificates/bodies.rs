//! Request bodies and response types below a certificate's path.

use keywright_harness::{Answer, Server};
use reqwest::{Method, header};
use serde_json::{Value, json};

use super::{CERTIFICATES, Certificate, ids, requests};
use crate::made_elsewhere::authority;

/// The requests that have a body, each with a valid one.
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
) -> Answer {
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
async fn another_content_type_is_400_and_named() {
    let server = Server::start().await;
    let certificate = given_certificate(&server, "/a").await;
    for (method, path, body) in with_a_body(&certificate) {
        for content_type in [None, Some("text/plain"), Some("application/xml")] {
            let to = (&method, path.as_str());
            let answer = send(&server, to, content_type, body.to_string()).await;
            assert_eq!(answer.status, 400, "{path} {content_type:?}");
            assert!(answer.error().contains("content type"), "{answer:?}");
        }
    }
    assert_eq!(certificate.versions().await.len(), 1);
}

#[tokio::test]
async fn the_content_type_may_have_a_charset_and_any_casing() {
    let server = Server::start().await;
    let certificate = given_certificate(&server, "/a").await;
    for (method, path, body) in with_a_body(&certificate) {
        for content_type in ["application/json;charset=UTF-8", "Application/JSON"] {
            let to = (&method, path.as_str());
            let answer = send(&server, to, Some(content_type), body.to_string()).await;
            assert_eq!(answer.status, 200, "{path} {content_type}: {answer:?}");
        }
    }
}

#[tokio::test]
async fn a_malformed_body_is_400_and_changes_nothing() {
    let server = Server::start().await;
    let certificate = given_certificate(&server, "/a").await;
    let before = certificate.versions().await;
    let deep = format!(r#"{{"value":{}{}}}"#, "[".repeat(500), "]".repeat(500));
    let malformed: [&[u8]; 9] = [
        b" ",
        b"{",
        b"{} {}",
        b"[]",
        b"null",
        b"{\"version\":null,\"version\":null}",
        b"{\"value\":{},\"value\":{}}",
        b"{\"version\":\"\xff\"}",
        deep.as_bytes(),
    ];
    for (method, path, _) in with_a_body(&certificate) {
        for body in malformed {
            let to = (&method, path.as_str());
            let answer = send(&server, to, Some("application/json"), body).await;
            let shown = String::from_utf8_lossy(body);
            assert_eq!(answer.status, 400, "{path} {shown}: {answer:?}");
            assert!(!answer.error().is_empty());
        }
    }
    assert_eq!(certificate.versions().await, before);
}

#[tokio::test]
async fn only_a_regeneration_may_omit_the_body() {
    let server = Server::start().await;
    let certificate = given_certificate(&server, "/a").await;
    for (method, path, _) in with_a_body(&certificate) {
        let to = (&method, path.as_str());
        let answer = send(&server, to, Some("application/json"), "").await;
        let status = if path.ends_with("regenerate") {
            200
        } else {
            400
        };
        assert_eq!(answer.status, status, "{path}: {answer:?}");
    }
    assert_eq!(certificate.versions().await.len(), 2);
}

#[tokio::test]
async fn an_unknown_field_is_422_and_named() {
    let server = Server::start().await;
    let certificate = given_certificate(&server, "/a").await;
    let before = certificate.versions().await;
    for (method, path, mut body) in with_a_body(&certificate) {
        body["stray"] = json!(1);
        let to = (&method, path.as_str());
        let answer = send(&server, to, Some("application/json"), body.to_string()).await;
        let error = answer.expect(422).error();
        assert!(error.contains("stray"), "{path}: {error}");
    }
    assert_eq!(certificate.versions().await, before);
}

#[tokio::test]
async fn responses_are_utf_8_json_and_errors_objects_of_texts() {
    let server = Server::start().await;
    let certificate = given_certificate(&server, "/a").await;
    let version = ids(&certificate.versions().await)[0].clone();
    let mut all = requests(&certificate.id, &version);
    all.extend(requests("absent", &version));
    all.push((Method::GET, CERTIFICATES.to_owned(), Value::Null));
    let absent = format!("{CERTIFICATES}?name=/absent");
    all.push((Method::GET, absent, Value::Null));
    let mut refused = 0;
    for (method, path, body) in all {
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let to = (&method, path.as_str());
        let answer = send(&server, to, Some("application/json"), body).await;
        let content_type = answer.header("content-type");
        let expected = Some("application/json;charset=UTF-8");
        assert_eq!(content_type, expected, "{method} {path}");
        if answer.status >= 400 {
            assert!(!answer.error().is_empty(), "{method} {path}");
            refused += 1;
        }
    }
    // With the existing certificate: the flag cannot move to the version deleted before.
    assert_eq!(refused, 1 + requests("absent", &version).len() + 1);
}
