//! Ids of certificates that are not there, and paths and methods.

use keywright_harness::{Answer, Server};
use reqwest::Method;
use serde_json::{Value, json};

use super::{CERTIFICATES, Certificate, ids, requests};
use crate::made_elsewhere::authority;

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
        &version,
    ] {
        for request in requests(id, &version) {
            let told = format!("{request:?}");
            let answer = send(&server, request).await;
            assert_eq!(answer.status, 404, "{told}: {answer:?}");
            answer.error();
        }
    }
    assert_eq!(certificate.versions().await, before);
}

#[tokio::test]
async fn a_credential_that_is_made_anew_has_another_id() {
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
    let certificate = Certificate::generate_root(&server, "/a").await;
    let path = certificate.path("versions");
    let plain = server.get(&path).await.expect(200);
    let slashed = server.get(&format!("{path}/")).await.expect(200);
    assert_eq!(slashed.body, plain.body);
    let path = certificate.path("regenerate/");
    server.post(&path, json!({})).await.expect(200);
}

#[tokio::test]
async fn a_wrong_method_is_404_with_an_empty_body() {
    let server = Server::start().await;
    let certificate = Certificate::generate_root(&server, "/a").await;
    let version = ids(&certificate.versions().await)[0].clone();
    for (method, path) in [
        (Method::POST, CERTIFICATES.to_owned()),
        (Method::DELETE, CERTIFICATES.to_owned()),
        (Method::GET, certificate.path("regenerate")),
        (
            Method::POST,
            certificate.path("update_transitional_version"),
        ),
        (Method::DELETE, certificate.path("versions")),
        (
            Method::GET,
            certificate.path(&format!("versions/{version}")),
        ),
    ] {
        let answer = server.send(server.authorized(method, &path)).await;
        assert_eq!((answer.status, answer.body.as_str()), (404, ""), "{path}");
    }
}

#[tokio::test]
async fn without_a_token_nothing_is_answered() {
    let server = Server::start().await;
    let certificate = Certificate::generate_root(&server, "/a").await;
    let version = ids(&certificate.versions().await)[0].clone();
    let mut all = requests(&certificate.id, &version);
    all.push((Method::GET, CERTIFICATES.to_owned(), Value::Null));
    for (method, path, body) in all {
        let request = server.request(method, &path).body(body.to_string());
        assert_eq!(server.send(request).await.status, 401, "{path}");
    }
    assert_eq!(certificate.versions().await.len(), 1);
}
