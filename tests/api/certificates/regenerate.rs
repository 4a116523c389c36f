//! `POST /api/v1/certificates/{certificate_id}/regenerate`: the body, the flag, and the regenerated version.

use keywright_harness::Server;
use reqwest::{Method, header};
use serde_json::{Value, json};

use super::{Certificate, ids, transitional};
use crate::{given, made_elsewhere::authority};

#[tokio::test]
async fn the_body_and_all_its_fields_are_optional() {
    let server = Server::start().await;
    let parameters = json!({"key_type": "rsa", "self_sign": true, "duration": 17});
    let certificate = Certificate::generate(&server, "/a", parameters).await;
    let path = certificate.path("regenerate");
    let bare = server.request(Method::POST, &path);
    let bare = bare.bearer_auth(server.token());
    for request in [
        bare,
        server.authorized(Method::POST, &path),
        server.authorized(Method::POST, &path).body("{}"),
    ] {
        let version = server.send(request).await.expect(200).json();
        assert_eq!(version["transitional"], false);
        assert_eq!(version["generated"], true);
        assert_eq!(version["self_signed"], true);
        assert_eq!(version["metadata"], Value::Null);
        assert_eq!(version["duration_overridden"], false);
        assert_eq!(version["duration_used"], 17);
        assert_eq!(version["key_length"], 2048);
        assert_eq!(ids(&certificate.versions().await)[0], given::id(&version));
    }
    assert_eq!(certificate.versions().await.len(), 4);
}

#[tokio::test]
async fn the_new_version_is_transitional_on_request() {
    let server = Server::start().await;
    let certificate = Certificate::generate_root(&server, "/a").await;
    for (asked, is_transitional) in [
        (json!(true), true),
        (json!("true"), true),
        (json!(false), false),
        (json!("false"), false),
    ] {
        let body = json!({"set_as_transitional": asked});
        let version = certificate.regenerate(body).await.expect(200).json();
        assert_eq!(version["transitional"], is_transitional, "{asked}");
        let stored = certificate.versions().await[0].clone();
        assert_eq!(stored["transitional"], is_transitional, "{asked}");
        certificate.move_transitional(Value::Null).await.expect(200);
    }
}

#[tokio::test]
async fn a_second_transitional_version_is_400() {
    let server = Server::start().await;
    let certificate = Certificate::generate_root(&server, "/a").await;
    let body = json!({"set_as_transitional": true});
    certificate.regenerate(body.clone()).await.expect(200);
    let oldest = ids(&certificate.versions().await)[1].clone();
    for flag in [Value::Null, json!(oldest)] {
        if !flag.is_null() {
            certificate.move_transitional(flag).await.expect(200);
        }
        let before = certificate.versions().await;
        let error = certificate
            .regenerate(body.clone())
            .await
            .expect(400)
            .error();
        assert!(error.contains("transitional"), "{error}");
        assert_eq!(certificate.versions().await, before);
    }
    certificate.regenerate(json!({})).await.expect(200);
    assert_eq!(transitional(&certificate.versions().await), [oldest]);
}

#[tokio::test]
async fn a_certificate_with_only_a_transitional_version_is_refused() {
    let server = Server::start().await;
    let certificate = Certificate::generate_root(&server, "/a").await;
    let only = ids(&certificate.versions().await);
    certificate
        .move_transitional(json!(only[0]))
        .await
        .expect(200);
    for body in [json!({}), json!({"set_as_transitional": true})] {
        certificate.regenerate(body).await.expect(400).error();
    }
    assert_eq!(ids(&certificate.versions().await), only);
    // By name it can: there the newest version of any kind counts.
    let version = server.regenerate("/a").await.expect(200).json();
    assert_eq!(version["transitional"], false);
    certificate.regenerate(json!({})).await.expect(200);
}

#[tokio::test]
async fn the_newest_non_transitional_version_is_regenerated() {
    let server = Server::start().await;
    let parameters = json!({"self_sign": true, "duration": 17});
    let certificate = Certificate::generate(&server, "/a", parameters).await;
    let newer = json!({"set_as_transitional": true, "duration": 30});
    certificate.regenerate(newer).await.expect(200);
    let version = certificate.regenerate(json!({})).await.expect(200).json();
    assert_eq!(version["duration_used"], 17);
    let in_use = json!({"duration": 40});
    certificate.regenerate(in_use).await.expect(200);
    let version = certificate.regenerate(json!({})).await.expect(200).json();
    assert_eq!(version["duration_used"], 40);
}

#[tokio::test]
async fn metadata_is_kept_with_the_version_and_not_inherited() {
    let server = Server::start().await;
    let certificate = Certificate::generate_root(&server, "/a").await;
    let metadata = json!({"z": [1, null], "a": "b"});
    let body = json!({"metadata": metadata});
    let version = certificate.regenerate(body).await.expect(200).json();
    assert_eq!(version["metadata"], metadata);
    assert_eq!(certificate.versions().await[0]["metadata"], metadata);
    let version = certificate.regenerate(json!({})).await.expect(200).json();
    assert_eq!(version["metadata"], Value::Null);
    let long = json!({"metadata": "x".repeat(6_999)});
    certificate.regenerate(long).await.expect(413).error();
    let longest = json!({"metadata": "x".repeat(6_998)});
    certificate.regenerate(longest).await.expect(200);
}

#[tokio::test]
async fn each_mistake_in_the_body_has_its_status_and_writes_nothing() {
    let server = Server::start().await;
    let certificate = Certificate::generate_root(&server, "/a").await;
    for (body, status, named) in [
        (json!({"unknown": 1}), 422, "unknown"),
        (json!({"name": "/a"}), 422, "name"),
        (
            json!({"set_as_transitional": "maybe"}),
            400,
            "set_as_transitional",
        ),
        (
            json!({"set_as_transitional": 2}),
            400,
            "set_as_transitional",
        ),
        (
            json!({"set_as_transitional": null}),
            400,
            "set_as_transitional",
        ),
        (
            json!({"allow_transitional_parent_to_sign": "maybe"}),
            400,
            "allow_transitional_parent_to_sign",
        ),
        (json!([]), 400, ""),
        (json!("text"), 400, ""),
        (Value::Null, 400, ""),
    ] {
        let error = certificate.regenerate(body.clone()).await.expect(status);
        assert!(error.error().contains(named), "{body}");
    }
    let other_type = server
        .request(Method::POST, &certificate.path("regenerate"))
        .bearer_auth(server.token())
        .header(header::CONTENT_TYPE, "text/plain")
        .body("{}");
    server.send(other_type).await.expect(400).error();
    assert_eq!(certificate.versions().await.len(), 1);
}

#[tokio::test]
async fn regenerating_a_set_certificate_needs_a_named_ca() {
    let server = Server::start().await;
    let root = authority("root");
    let leaf = root.sign_leaf("leaf");
    let stored = json!({"certificate": root.certificate, "private_key": root.private_key});
    Certificate::set(&server, "/root", stored).await;
    for (name, value, status) in [
        (
            "/by-name",
            json!({"ca_name": "/root", "certificate": leaf.certificate}),
            200,
        ),
        (
            "/by-value",
            json!({"ca": root.certificate, "certificate": leaf.certificate}),
            400,
        ),
        ("/without", json!({"private_key": leaf.private_key}), 400),
    ] {
        let certificate = Certificate::set(&server, name, value).await;
        let answer = certificate.regenerate(json!({})).await;
        assert_eq!(answer.status, status, "{name}: {answer:?}");
    }
    server.delete("/api/v1/data?name=/root").await.expect(204);
    let orphan = Certificate::named(&server, "/by-name").await;
    orphan.regenerate(json!({})).await.expect(404).error();
}
