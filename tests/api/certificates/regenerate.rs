//! `POST /api/v1/certificates/{certificate_id}/regenerate`.

use keywright_harness::Server;
use reqwest::{Method, header};
use serde_json::{Value, json};

use super::{Certificate, assert_signed_by, ids, transitional};
use crate::{
    given,
    keys::{certificate_days, certificate_key_bits},
};

// The request body, the flag `set_as_transitional`, and the regenerated version.

#[tokio::test]
async fn the_body_and_all_its_fields_are_optional() {
    let server = Server::reused().await;
    let parameters = json!({"key_type": "rsa", "self_sign": true, "duration": 17});
    let certificate = Certificate::generate(&server, "/a", parameters).await;
    let path = certificate.path("regenerate");
    let bare = server.request(Method::POST, &path);
    let bare = bare.bearer_auth(server.token());
    for request in [
        bare,
        server.authorized(Method::POST, &path),
        server.authorized(Method::POST, &path).body("{}"),
        server
            .request(Method::POST, &path)
            .bearer_auth(server.token())
            .header(header::CONTENT_TYPE, "text/plain")
            .body(""),
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
    assert_eq!(certificate.versions().await.len(), 5);
}

#[tokio::test]
async fn the_new_version_is_transitional_on_request() {
    let server = Server::reused().await;
    let certificate = Certificate::generate_root(&server, "/a").await;
    for (flag, is_transitional) in [
        (json!(true), true),
        (json!("true"), true),
        (json!(false), false),
        (json!("false"), false),
    ] {
        let body = json!({"set_as_transitional": flag});
        let version = certificate.regenerate(body).await.expect(200).json();
        assert_eq!(version["transitional"], is_transitional, "{flag}");
        let stored = certificate.versions().await[0].clone();
        assert_eq!(stored["transitional"], is_transitional, "{flag}");
        certificate.move_transitional(Value::Null).await.expect(200);
    }
}

#[tokio::test]
async fn a_second_transitional_version_is_400() {
    let server = Server::reused().await;
    let certificate = Certificate::generate_root(&server, "/a").await;
    let body = json!({"set_as_transitional": true});
    certificate.regenerate(body.clone()).await.expect(200);
    let oldest = ids(&certificate.versions().await)[1].clone();
    for flag in [Value::Null, json!(oldest)] {
        if !flag.is_null() {
            certificate.move_transitional(flag).await.expect(200);
        }
        let before = certificate.versions().await;
        let response = certificate.regenerate(body.clone()).await;
        response.expect_error(400, "clear its transitional flag");
        assert_eq!(certificate.versions().await, before);
    }
    certificate.regenerate(json!({})).await.expect(200);
    assert_eq!(transitional(&certificate.versions().await), [oldest]);
}

#[tokio::test]
async fn a_certificate_with_only_a_transitional_version_is_refused() {
    let server = Server::reused().await;
    let certificate = Certificate::generate_root(&server, "/a").await;
    let only = ids(&certificate.versions().await);
    let response = certificate.move_transitional(json!(only[0])).await;
    response.expect(200);
    for body in [json!({}), json!({"set_as_transitional": true})] {
        certificate.regenerate(body).await.expect(400).error();
    }
    assert_eq!(ids(&certificate.versions().await), only);
    // Regeneration by name succeeds: it uses the newest version, transitional or not.
    let version = server.regenerated("/a").await;
    assert_eq!(version["transitional"], false);
    certificate.regenerate(json!({})).await.expect(200);
}

#[tokio::test]
async fn the_newest_non_transitional_version_is_regenerated() {
    let server = Server::reused().await;
    let parameters = json!({"self_sign": true, "duration": 17});
    let certificate = Certificate::generate(&server, "/a", parameters).await;
    let newer = json!({"set_as_transitional": true, "duration": 30});
    certificate.regenerate(newer).await.expect(200);
    let version = certificate.regenerate(json!({})).await.expect(200).json();
    assert_eq!(version["duration_used"], 17);
    let active = json!({"duration": 40});
    certificate.regenerate(active).await.expect(200);
    let version = certificate.regenerate(json!({})).await.expect(200).json();
    assert_eq!(version["duration_used"], 40);
}

#[tokio::test]
async fn metadata_is_kept_with_the_version_and_not_inherited() {
    let server = Server::reused().await;
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

const REFUSED: &str = r#"
    422 POST PATH {"unknown": 1} => unknown
    422 POST PATH {"name": "/a"} => name
    400 POST PATH {"set_as_transitional": "maybe"} => set_as_transitional
    400 POST PATH {"set_as_transitional": 2} => set_as_transitional
    400 POST PATH {"set_as_transitional": null} => set_as_transitional
    400 POST PATH {"allow_transitional_parent_to_sign": "maybe"} => allow_transitional_parent_to_sign
    400 POST PATH []
    400 POST PATH "text"
    400 POST PATH null
"#;

#[tokio::test]
async fn invalid_bodies_are_refused_and_add_no_version() {
    let server = Server::reused().await;
    let certificate = Certificate::generate_root(&server, "/a").await;
    let path = certificate.path("regenerate");
    given::assert_refused(&server, &REFUSED.replace("PATH", &path)).await;
    let other_type = server
        .request(Method::POST, &path)
        .bearer_auth(server.token())
        .header(header::CONTENT_TYPE, "text/plain")
        .body("{}");
    server.send(other_type).await.expect(400).error();
    assert_eq!(certificate.versions().await.len(), 1);
}

// Requests with another key length or duration.

fn key_bits(version: &Value) -> usize {
    certificate_key_bits(version["value"]["certificate"].as_str().unwrap())
}

fn duration_days(version: &Value) -> i64 {
    certificate_days(version["value"]["certificate"].as_str().unwrap())
}

/// Generates a CA with an RSA key.
async fn rsa_root(server: &Server) -> Certificate<'_> {
    let parameters = json!({"is_ca": true, "key_type": "rsa"});
    Certificate::generate(server, "/a", parameters).await
}

#[tokio::test]
async fn changes_of_key_length_and_duration_persist() {
    let server = Server::reused().await;
    let certificate = rsa_root(&server).await;
    for (body, bits, days) in [
        (json!({"duration": 17}), 2048, 17),
        (json!({"key_length": 3072}), 3072, 17),
        (json!({}), 3072, 17),
        (json!({"key_length": null, "duration": null}), 3072, 17),
        (json!({"key_length": "2048", "duration": "1"}), 2048, 1),
        (json!({"duration": 3650}), 2048, 3650),
    ] {
        let response = certificate.regenerate(body.clone()).await;
        let version = response.expect(200).json();
        let actual = (key_bits(&version), duration_days(&version));
        assert_eq!(actual, (bits, days), "{body}");
        assert_eq!(version["key_length"], bits, "{body}");
        assert_eq!(version["duration_used"], days, "{body}");
        assert_eq!(version["duration_overridden"], false, "{body}");
        assert_eq!(version["certificate_authority"], true, "{body}");
    }
}

#[tokio::test]
async fn values_refused_on_generate_are_refused_on_regenerate() {
    let server = Server::reused().await;
    let certificate = rsa_root(&server).await;
    for (field, values) in [
        ("key_length", json!([1024, 0, -2048, 8192, 2048.5])),
        ("duration", json!([0, -1, 3651, 1.5, u64::MAX])),
    ] {
        let of_other_kinds = json!(["x", true, [], {}]);
        for value in [values, of_other_kinds].into_iter().flat_map(given::each) {
            let response = certificate.regenerate(json!({field: value})).await;
            response.expect_error(400, field);
        }
    }
    assert_eq!(certificate.versions().await.len(), 1);
}

// The CA version that signs.

fn leaf() -> Value {
    json!({"common_name": "leaf", "ca": "/root"})
}

/// Returns the body that allows a transitional version to sign.
fn allowed() -> Value {
    json!({"allow_transitional_parent_to_sign": true})
}

#[tokio::test]
async fn a_newer_transitional_version_does_not_sign() {
    let server = Server::reused().await;
    let root = Certificate::generate_root(&server, "/root").await;
    let body = json!({"set_as_transitional": true});
    root.regenerate(body).await.expect(200);
    let active = root.current().await[0].clone();
    assert_signed_by(&server.issued("/leaf", leaf()).await, &active);
    assert_signed_by(&server.regenerated("/leaf").await, &active);
    let leaf = Certificate::named(&server, "/leaf").await;
    for body in given::each(json!([{}, {"allow_transitional_parent_to_sign": false}])) {
        assert_signed_by(&leaf.regenerate(body).await.expect(200).json(), &active);
    }
}

#[tokio::test]
async fn a_newer_transitional_version_signs_if_allowed() {
    let server = Server::reused().await;
    let root = Certificate::generate_root(&server, "/root").await;
    let leaf = Certificate::generate(&server, "/leaf", leaf()).await;
    let active = root.versions().await[0].clone();
    let signed = leaf.regenerate(allowed()).await.expect(200).json();
    assert_signed_by(&signed, &active);
    let body = json!({"set_as_transitional": true});
    let newer = root.regenerate(body).await.expect(200).json();
    for flag in [json!(true), json!("true")] {
        let body = json!({"allow_transitional_parent_to_sign": flag});
        let signed = leaf.regenerate(body).await.expect(200).json();
        assert_signed_by(&signed, &newer);
        assert_eq!(signed["transitional"], false);
    }
}

#[tokio::test]
async fn an_older_transitional_version_never_signs() {
    let server = Server::reused().await;
    let root = Certificate::generate_root(&server, "/root").await;
    let leaf = Certificate::generate(&server, "/leaf", leaf()).await;
    let newer = root.regenerate(json!({})).await.expect(200).json();
    let older = ids(&root.versions().await)[1].clone();
    root.move_transitional(json!(older)).await.expect(200);
    for body in [json!({}), allowed()] {
        assert_signed_by(&leaf.regenerate(body).await.expect(200).json(), &newer);
    }
    assert_signed_by(&server.regenerated("/leaf").await, &newer);
}

#[tokio::test]
async fn a_ca_with_only_a_transitional_version_is_404() {
    let server = Server::reused().await;
    let root = Certificate::generate_root(&server, "/root").await;
    let signed = Certificate::generate(&server, "/leaf", leaf()).await;
    let only = ids(&root.versions().await)[0].clone();
    root.move_transitional(json!(only)).await.expect(200);
    let response = server.generate("/other", "certificate", leaf()).await;
    response.expect(404).error();
    server.regenerate("/leaf").await.expect(404).error();
    for body in [json!({}), allowed()] {
        signed.regenerate(body).await.expect(404).error();
    }
    assert_eq!(signed.versions().await.len(), 1);
}

#[tokio::test]
async fn a_ca_that_can_not_sign_is_named_only_to_its_readers() {
    let server = Server::reused().await;
    let root = server.generate_authority("/root", None).await;
    let leaf = Certificate::generate(&server, "/leaf", leaf()).await;
    let without_key = json!({"certificate": root["value"]["certificate"]});
    server.stored("/root", "certificate", without_key).await;
    let writer = server.as_client("writer").await;
    server.grant("/leaf", writer.actor(), &["write"]).await;
    let path = leaf.path("regenerate");
    let refused = writer.post(&path, json!({})).await;
    refused.expect_error(400, "can't sign");
    refused.assert_lacks("/root");
    let refused = leaf.regenerate(json!({})).await;
    refused.expect_error(400, "the CA /root can't sign");
}
