//! Allowed fields, and requirements on certificates.

use keywright_harness::Server;
use serde_json::{Value, json};

use super::VERSION_1;
use crate::made_elsewhere::{another_private_key, authority, self_signed_leaf};

#[tokio::test]
async fn any_one_of_the_four_fields_is_enough() {
    let server = Server::start().await;
    let root = authority("root");
    let stored = json!({"certificate": root.certificate});
    server.set("/root", "certificate", stored).await.expect(200);
    let key = another_private_key();
    let absent = Value::Null;
    for (given, ca, certificate, private_key) in [
        (
            json!({"ca": root.certificate}),
            json!(root.certificate),
            absent.clone(),
            absent.clone(),
        ),
        (
            json!({"ca_name": "/root"}),
            json!(root.certificate),
            absent.clone(),
            absent.clone(),
        ),
        (
            json!({"certificate": VERSION_1}),
            absent.clone(),
            json!(VERSION_1),
            absent.clone(),
        ),
        (
            json!({"private_key": key}),
            absent.clone(),
            absent.clone(),
            json!(key),
        ),
    ] {
        let answer = server
            .set("/a", "certificate", given.clone())
            .await
            .expect(200)
            .json();
        let expected = json!({"ca": ca, "certificate": certificate, "private_key": private_key});
        assert_eq!(answer["value"], expected);
        let expires = given.get("certificate").is_some();
        assert_eq!(answer["expiry_date"].is_string(), expires, "{given}");
        assert!(answer.get("expiry_date").is_some());
        assert_eq!(server.versions("/a").await[0]["value"], expected);
    }
}

#[tokio::test]
async fn a_certificate_without_fields_is_400() {
    let server = Server::start().await;
    for value in [
        json!({}),
        json!({"ca": "", "ca_name": "", "certificate": "", "private_key": ""}),
        json!({"ca": null, "ca_name": null, "certificate": null, "private_key": null}),
        json!({"transitional": false}),
    ] {
        server
            .set("/a", "certificate", value)
            .await
            .expect(400)
            .error();
    }
}

#[tokio::test]
async fn empty_strings_and_nulls_are_absent_fields() {
    let server = Server::start().await;
    let leaf = self_signed_leaf("leaf");
    for empty in [json!(""), Value::Null] {
        let value = json!({
            "ca": empty, "ca_name": empty, "certificate": leaf.certificate, "private_key": empty,
        });
        let answer = server
            .set("/a", "certificate", value)
            .await
            .expect(200)
            .json();
        let expected = json!({"ca": null, "certificate": leaf.certificate, "private_key": null});
        assert_eq!(answer["value"], expected);
    }
}

#[tokio::test]
async fn ca_and_ca_name_together_are_400() {
    let server = Server::start().await;
    let root = authority("root");
    let stored = json!({"certificate": root.certificate});
    server.set("/root", "certificate", stored).await.expect(200);
    let value = json!({
        "certificate": root.sign_leaf("leaf").certificate,
        "ca": root.certificate,
        "ca_name": "/root",
    });
    let error = server
        .set("/a", "certificate", value)
        .await
        .expect(400)
        .error();
    assert!(error.contains("ca_name"), "{error}");
}

#[tokio::test]
async fn fields_of_another_json_type_are_400_and_named() {
    let server = Server::start().await;
    for member in ["ca", "ca_name", "certificate", "private_key"] {
        for wrong in [json!(1), json!(true), json!(["x"]), json!({"x": "y"})] {
            let value = json!({member: wrong});
            let error = server
                .set("/a", "certificate", value)
                .await
                .expect(400)
                .error();
            assert!(error.contains(member), "{error}");
        }
    }
}

#[tokio::test]
async fn an_invalid_certificate_is_400_and_names_the_field() {
    let server = Server::start().await;
    let leaf = self_signed_leaf("leaf");
    let half = leaf.certificate.len() / 2;
    let body = leaf.certificate.lines().nth(1).unwrap();
    for wrong in [
        "garbage",
        "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n",
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        &leaf.certificate[..half],
        &leaf.certificate.replace(body, ""),
        &leaf.private_key,
        body,
    ] {
        for member in ["certificate", "ca"] {
            let value = json!({member: wrong});
            let error = server
                .set("/a", "certificate", value)
                .await
                .expect(400)
                .error();
            assert!(error.contains(member), "{error}");
        }
    }
    assert!(server.versions("/a").await.is_empty());
}

#[tokio::test]
async fn only_the_first_certificate_of_a_bundle_counts() {
    let server = Server::start().await;
    let root = authority("root");
    let leaf = root.sign_leaf("leaf");
    for rest in [
        root.certificate.as_str(),
        "text\n",
        "-----BEGIN CERTIFICATE-----\nAAAA\n",
    ] {
        let bundle = format!("{}{rest}", leaf.certificate);
        let value = json!({"certificate": bundle, "private_key": leaf.private_key});
        let answer = server
            .set("/a", "certificate", value)
            .await
            .expect(200)
            .json();
        assert_eq!(answer["value"]["certificate"], bundle);
        assert_eq!(answer["certificate_authority"], false);
    }
}

#[tokio::test]
async fn response_fields_inside_the_value_are_ignored() {
    let server = Server::start().await;
    let leaf = self_signed_leaf("leaf");
    let value = json!({
        "certificate": leaf.certificate,
        "transitional": true,
        "self_signed": true,
        "certificate_authority": true,
        "generated": true,
    });
    let answer = server
        .set("/a", "certificate", value)
        .await
        .expect(200)
        .json();
    for claim in [
        "transitional",
        "self_signed",
        "certificate_authority",
        "generated",
    ] {
        assert_eq!(answer[claim], false, "{claim}");
    }
}

#[tokio::test]
async fn a_value_over_64_kib_is_413() {
    let server = Server::start().await;
    let padding = "\n".repeat(65_536);
    let private_key = format!("{}{padding}", another_private_key());
    let answer = server
        .set("/a", "certificate", json!({"private_key": private_key}))
        .await;
    answer.expect(413).error();
    assert!(server.versions("/a").await.is_empty());
}
