//! Bodies, ids, paths and methods of requests below a certificate's path.

use keywright_harness::{Response, Server};
use reqwest::{Method, header};
use serde_json::{Value, json};

use super::{CERTIFICATES, Certificate, array, ids, requests, transitional};
use crate::{external_certificates::authority, given};

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
async fn another_content_type_is_400_and_named() {
    let server = Server::start().await;
    let certificate = given_certificate(&server, "/a").await;
    for (method, path, body) in with_a_body(&certificate) {
        for content_type in [None, Some("text/plain"), Some("application/xml")] {
            let to = (&method, path.as_str());
            let response = send(&server, to, content_type, body.to_string()).await;
            assert_eq!(response.status, 400, "{path} {content_type:?}");
            assert!(response.error().contains("content type"), "{response:?}");
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
            let response = send(&server, to, Some(content_type), body.to_string()).await;
            assert_eq!(response.status, 200, "{path} {content_type}: {response:?}");
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
            let response = send(&server, to, Some("application/json"), body).await;
            let shown = String::from_utf8_lossy(body);
            assert_eq!(response.status, 400, "{path} {shown}: {response:?}");
            assert!(!response.error().is_empty());
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
        let response = send(&server, to, Some("application/json"), "").await;
        let status = if path.ends_with("regenerate") {
            200
        } else {
            400
        };
        assert_eq!(response.status, status, "{path}: {response:?}");
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
        let response = send(&server, to, Some("application/json"), body.to_string()).await;
        let error = response.expect(422).error();
        assert!(error.contains("stray"), "{path}: {error}");
    }
    assert_eq!(certificate.versions().await, before);
}

#[tokio::test]
async fn responses_are_utf_8_json_and_errors_are_objects_of_strings() {
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
        let response = send(&server, to, Some("application/json"), body).await;
        let content_type = response.header("content-type");
        let expected = Some("application/json;charset=UTF-8");
        assert_eq!(content_type, expected, "{method} {path}");
        if response.status >= 400 {
            assert!(!response.error().is_empty(), "{method} {path}");
            refused += 1;
        }
    }
    // One request for the existing certificate fails: the flag cannot move to a version that an earlier request deleted.
    assert_eq!(refused, 1 + requests("absent", &version).len() + 1);
}

// Unknown ids of certificates, paths and methods.

async fn send_request(server: &Server, (method, path, body): (Method, String, Value)) -> Response {
    let request = server.authorized(method, &path);
    let request = if body.is_null() {
        request
    } else {
        request.body(body.to_string())
    };
    server.send(request).await
}

#[tokio::test]
async fn an_unknown_certificate_id_is_404() {
    let server = Server::start().await;
    let value = json!({"certificate": authority("root").certificate});
    let certificate = Certificate::set(&server, "/a", value.clone()).await;
    Certificate::set(&server, "/a", value).await;
    let before = certificate.versions().await;
    let version = ids(&before)[0].clone();
    for id in [
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
            let reported = format!("{request:?}");
            let response = send_request(&server, request).await;
            assert_eq!(response.status, 404, "{reported}: {response:?}");
            response.error();
        }
    }
    assert_eq!(certificate.versions().await, before);
}

#[tokio::test]
async fn a_recreated_credential_has_another_id() {
    let server = Server::start().await;
    let value = json!({"certificate": authority("root").certificate});
    let old = Certificate::set(&server, "/a", value.clone()).await;
    server.delete("/api/v1/data?name=/a").await.expect(204);
    Certificate::set(&server, "/a", value.clone()).await;
    let new = Certificate::set(&server, "/a", value).await;
    assert_ne!(old.id, new.id);
    let before = new.versions().await;
    for request in requests(&old.id, &ids(&before)[0]) {
        assert_eq!(send_request(&server, request).await.status, 404);
    }
    assert_eq!(new.versions().await, before);
}

#[tokio::test]
async fn a_bad_body_is_reported_before_an_absent_certificate() {
    let server = Server::start().await;
    let path = format!("{CERTIFICATES}/8ffd2a43-0ba6-44cf-8b55-e2e9ba2cb9e9");
    let unknown = json!({"unknown": 1, "version": null, "value": {}});
    for (method, below) in [
        (Method::POST, "regenerate"),
        (Method::POST, "versions"),
        (Method::PUT, "update_transitional_version"),
    ] {
        let request = (method, format!("{path}/{below}"), unknown.clone());
        send_request(&server, request).await.expect(422).error();
    }
    let versions = format!("{path}/versions?current=maybe");
    server.get(&versions).await.expect(400).error();
}

#[tokio::test]
async fn a_trailing_slash_changes_nothing() {
    let server = Server::start().await;
    let parameters = json!({"common_name": "a", "is_ca": true, "key_type": "ecdsa-p256"});
    let certificate = Certificate::generate(&server, "/a", parameters).await;
    let first = certificate.versions().await[0].clone();
    for query in ["", "?current=true"] {
        let plain = certificate.path(&format!("versions{query}"));
        let slashed = certificate.path(&format!("versions/{query}"));
        let plain = server.get(&plain).await.expect(200);
        let slashed = server.get(&slashed).await.expect(200);
        assert_eq!(slashed.body, plain.body, "{query}");
    }
    let path = certificate.path("versions/");
    let body = json!({"value": {"certificate": authority("x").certificate}});
    let added = server.post(&path, body).await.expect(200).json();
    let path = certificate.path("update_transitional_version/");
    let body = json!({"version": added["id"]});
    let moved = server.put(&path, body).await.expect(200);
    assert_eq!(
        transitional(&certificate.versions().await),
        [given::id(&added)]
    );
    assert_eq!(array(&moved), certificate.current().await);
    let path = certificate.path(&format!("versions/{}/", given::id(&added)));
    server.delete(&path).await.expect(200);
    let path = certificate.path("regenerate/");
    let made = server.post(&path, json!({})).await.expect(200).json();
    let versions = certificate.versions().await;
    assert_eq!(ids(&versions), [given::id(&made), given::id(&first)]);
}

#[tokio::test]
async fn a_wrong_method_is_404_with_an_empty_body() {
    let server = Server::start().await;
    let value = json!({"certificate": authority("root").certificate});
    let certificate = Certificate::set(&server, "/a", value.clone()).await;
    Certificate::set(&server, "/a", value).await;
    let before = certificate.versions().await;
    let version = ids(&before)[0].clone();
    for (path, methods) in [
        (CERTIFICATES.to_owned(), vec![Method::GET]),
        (certificate.path("regenerate"), vec![Method::POST]),
        (
            certificate.path("update_transitional_version"),
            vec![Method::PUT],
        ),
        (
            certificate.path("versions"),
            vec![Method::GET, Method::POST],
        ),
        (
            certificate.path(&format!("versions/{version}")),
            vec![Method::DELETE],
        ),
    ] {
        for method in [
            Method::GET,
            Method::POST,
            Method::PUT,
            Method::PATCH,
            Method::DELETE,
        ] {
            if methods.contains(&method) {
                continue;
            }
            for path in [path.clone(), format!("{path}/")] {
                let request = server.authorized(method.clone(), &path);
                let response = server.send(request.body("{}")).await;
                let responded = (response.status, response.body.as_str());
                assert_eq!(responded, (404, ""), "{method} {path}");
            }
        }
    }
    assert_eq!(certificate.versions().await, before);
}

#[tokio::test]
async fn an_unknown_path_is_404_with_an_error() {
    let server = Server::start().await;
    let value = json!({"certificate": authority("root").certificate});
    let certificate = Certificate::set(&server, "/a", value).await;
    let version = ids(&certificate.versions().await)[0].clone();
    for path in [
        format!("{CERTIFICATES}/{}", certificate.id),
        format!("{CERTIFICATES}/{}/", certificate.id),
        format!("{CERTIFICATES}//versions"),
        certificate.path("unheard-of"),
        certificate.path(&format!("versions/{version}/regenerate")),
    ] {
        let response = server.get(&path).await;
        assert!(!response.expect(404).error().is_empty(), "{path}");
    }
}

#[tokio::test]
async fn without_a_token_every_request_is_401() {
    let server = Server::start().await;
    let certificate = Certificate::generate_root(&server, "/a").await;
    let version = ids(&certificate.versions().await)[0].clone();
    let mut all = requests(&certificate.id, &version);
    all.push((Method::GET, CERTIFICATES.to_owned(), Value::Null));
    for (method, path, body) in all {
        let request = server.request(method, &path).body(body.to_string());
        let response = server.send(request).await;
        assert_eq!(response.status, 401, "{path}");
        assert_eq!(response.error(), "access_denied", "{path}");
    }
    assert_eq!(certificate.versions().await.len(), 1);
}
