//! Unknown ids of certificates, paths and methods.

use keywright_harness::{Answer, Server};
use reqwest::Method;
use serde_json::{Value, json};

use super::{CERTIFICATES, Certificate, array, ids, requests, transitional};
use crate::{given, made_elsewhere::authority};

async fn send(server: &Server, (method, path, body): (Method, String, Value)) -> Answer {
    let request = server.authorized(method, &path);
    let request = if body.is_null() {
        request
    } else {
        request.body(body.to_string())
    };
    server.send(request).await
}

#[tokio::test]
async fn an_id_that_no_certificate_has_is_404() {
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
            let answer = send(&server, request).await;
            assert_eq!(answer.status, 404, "{reported}: {answer:?}");
            answer.error();
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
        assert_eq!(send(&server, request).await.status, 404);
    }
    assert_eq!(new.versions().await, before);
}

#[tokio::test]
async fn a_bad_body_wins_over_an_absent_certificate() {
    let server = Server::start().await;
    let path = format!("{CERTIFICATES}/8ffd2a43-0ba6-44cf-8b55-e2e9ba2cb9e9");
    let unknown = json!({"unknown": 1, "version": null, "value": {}});
    for (method, below) in [
        (Method::POST, "regenerate"),
        (Method::POST, "versions"),
        (Method::PUT, "update_transitional_version"),
    ] {
        let request = (method, format!("{path}/{below}"), unknown.clone());
        send(&server, request).await.expect(422).error();
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
                let answer = server.send(request.body("{}")).await;
                let answered = (answer.status, answer.body.as_str());
                assert_eq!(answered, (404, ""), "{method} {path}");
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
        let answer = server.get(&path).await;
        assert!(!answer.expect(404).error().is_empty(), "{path}");
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
        let answer = server.send(request).await;
        assert_eq!(answer.status, 401, "{path}");
        assert_eq!(answer.error(), "access_denied", "{path}");
    }
    assert_eq!(certificate.versions().await.len(), 1);
}
