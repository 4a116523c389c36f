//! The fields of a set certificate.

use chrono::DateTime;
use keywright_harness::{Server, TestCertificate};
use rcgen::{
    CertificateParams, CustomExtension, DistinguishedName, IsCa, PKCS_ECDSA_P256_SHA256,
    PKCS_ECDSA_P384_SHA384, PKCS_ECDSA_P521_SHA512, PKCS_ED25519,
};
use serde_json::{Value, json};

use crate::{
    external_certificates::{
        Signing, another_private_key, authority, authority_encoded_differently, self_signed_leaf,
        self_signed_leaf_with,
    },
    keys::with_certificate,
};

/// An X.509 certificate of version 1.
const VERSION_1: &str = include_str!("made_by_openssl/version-1.pem");

// Allowed fields, and requirements on certificates.

#[tokio::test]
async fn any_one_of_the_four_fields_is_enough() {
    let server = Server::reused().await;
    let root = authority("root");
    server.stored("/root", "certificate", root.public()).await;
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
        let response = server.stored("/a", "certificate", given.clone()).await;
        let expected = json!({"ca": ca, "certificate": certificate, "private_key": private_key});
        assert_eq!(response["value"], expected);
        let expires = given.get("certificate").is_some();
        assert_eq!(response["expiry_date"].is_string(), expires, "{given}");
        assert!(response.get("expiry_date").is_some());
        assert_eq!(server.versions("/a").await[0]["value"], expected);
    }
}

#[tokio::test]
async fn a_certificate_without_fields_is_400() {
    let server = Server::reused().await;
    for value in [
        json!({}),
        json!({"ca": "", "ca_name": "", "certificate": "", "private_key": ""}),
        json!({"ca": null, "ca_name": null, "certificate": null, "private_key": null}),
        json!({"transitional": false}),
    ] {
        let response = server.set("/a", "certificate", value).await;
        response.expect(400).error();
    }
}

#[tokio::test]
async fn empty_strings_and_nulls_are_absent_fields() {
    let server = Server::reused().await;
    let leaf = self_signed_leaf("leaf");
    for empty in [json!(""), Value::Null] {
        let value = json!({
            "ca": empty, "ca_name": empty, "certificate": leaf.certificate, "private_key": empty,
        });
        let response = server.stored("/a", "certificate", value).await;
        let expected = json!({"ca": null, "certificate": leaf.certificate, "private_key": null});
        assert_eq!(response["value"], expected);
    }
}

#[tokio::test]
async fn ca_and_ca_name_together_are_400() {
    let server = Server::reused().await;
    let root = authority("root");
    server.stored("/root", "certificate", root.public()).await;
    let value = json!({
        "certificate": root.sign_leaf("leaf").certificate,
        "ca": root.certificate,
        "ca_name": "/root",
    });
    let response = server.set("/a", "certificate", value).await;
    response.expect_error(400, "ca_name");
}

#[tokio::test]
async fn certificates_that_other_programs_can_not_use_are_400() {
    let server = Server::reused().await;
    let root = authority("root");
    let without_subject = |parameters: &mut CertificateParams| {
        parameters.distinguished_name = DistinguishedName::new();
    };
    let nameless_leaf = root.leaf_with("", without_subject);
    server
        .stored("/a", "certificate", nameless_leaf.public())
        .await;
    let nameless = root.authority_with("", without_subject);
    // The maximum number of CAs below it has 33 bits.
    let endless = TestCertificate::root_with("root", |parameters| {
        let constraints = b"\x30\x0a\x01\x01\xff\x02\x05\x01\0\0\0\0";
        parameters.is_ca = IsCa::NoCa;
        parameters.custom_extensions = vec![CustomExtension::from_oid_content(
            &[2, 5, 29, 19],
            constraints.to_vec(),
        )];
    });
    for (certificate, rule) in [
        (nameless, "is a CA without a subject"),
        (endless, "has an extension that can't be read"),
    ] {
        for field in ["certificate", "ca"] {
            let value = json!({field: certificate.certificate});
            let response = server.set("/a", "certificate", value).await;
            response.expect_error(400, &format!("{field} {rule}"));
        }
    }
}

#[tokio::test]
async fn fields_of_another_json_type_are_400_and_named() {
    let server = Server::reused().await;
    for field in ["ca", "ca_name", "certificate", "private_key"] {
        for wrong in [json!(1), json!(true), json!(["x"]), json!({"x": "y"})] {
            let value = json!({field: wrong});
            let response = server.set("/a", "certificate", value).await;
            response.expect_error(400, field);
        }
    }
}

#[tokio::test]
async fn an_invalid_certificate_is_400_and_names_the_field() {
    let server = Server::reused().await;
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
        for field in ["certificate", "ca"] {
            let value = json!({field: wrong});
            let response = server.set("/a", "certificate", value).await;
            response.expect_error(400, field);
        }
    }
    assert!(server.versions("/a").await.is_empty());
}

#[tokio::test]
async fn only_the_first_certificate_of_a_bundle_is_used() {
    let server = Server::reused().await;
    let root = authority("root");
    let leaf = root.sign_leaf("leaf");
    for rest in [root.certificate.as_str(), "text\n"] {
        let bundle = format!("{}{rest}", leaf.certificate);
        let value = json!({"certificate": bundle, "private_key": leaf.private_key});
        let response = server.stored("/a", "certificate", value).await;
        assert_eq!(response["value"]["certificate"], bundle);
        assert_eq!(response["certificate_authority"], false);
    }
}

#[tokio::test]
async fn response_fields_inside_the_value_are_ignored() {
    let server = Server::reused().await;
    let leaf = self_signed_leaf("leaf");
    let value = json!({
        "certificate": leaf.certificate,
        "transitional": true,
        "self_signed": true,
        "certificate_authority": true,
        "generated": true,
    });
    let response = server.stored("/a", "certificate", value).await;
    for claim in [
        "transitional",
        "self_signed",
        "certificate_authority",
        "generated",
    ] {
        assert_eq!(response[claim], false, "{claim}");
    }
}

// The private key of a certificate.

const VERSION_1_KEY_PKCS1: &str = include_str!("made_by_openssl/version-1-key.pkcs1.pem");
const VERSION_1_KEY_ENCRYPTED_PKCS1: &str =
    include_str!("made_by_openssl/version-1-key.encrypted-pkcs1.pem");
const VERSION_1_KEY_ENCRYPTED_PKCS8: &str =
    include_str!("made_by_openssl/version-1-key.encrypted-pkcs8.pem");
const ECDSA: &str = include_str!("made_by_openssl/ecdsa.pem");
const ECDSA_KEY_SEC1: &str = include_str!("made_by_openssl/ecdsa-key.sec1.pem");

#[tokio::test]
async fn keys_of_every_common_algorithm_and_form_are_kept_as_sent() {
    let server = Server::reused().await;
    let rsa = self_signed_leaf("rsa");
    let mut pairs = vec![
        (
            "RSA, PKCS#1",
            VERSION_1.to_owned(),
            VERSION_1_KEY_PKCS1.to_owned(),
        ),
        ("RSA, PKCS#8", rsa.certificate, rsa.private_key),
        ("ECDSA, SEC1", ECDSA.to_owned(), ECDSA_KEY_SEC1.to_owned()),
    ];
    for (what, algorithm) in [
        ("ECDSA P-256, PKCS#8", &PKCS_ECDSA_P256_SHA256),
        ("ECDSA P-384, PKCS#8", &PKCS_ECDSA_P384_SHA384),
        ("ECDSA P-521, PKCS#8", &PKCS_ECDSA_P521_SHA512),
        ("Ed25519, PKCS#8", &PKCS_ED25519),
    ] {
        let leaf = self_signed_leaf_with("leaf", algorithm);
        pairs.push((what, leaf.certificate, leaf.private_key));
    }
    for (what, certificate, private_key) in pairs {
        let value = json!({"certificate": certificate, "private_key": private_key});
        let response = server.set("/a", "certificate", value).await;
        assert_eq!(response.status, 200, "{what}: {}", response.body);
        assert_eq!(
            response.json()["value"]["private_key"],
            private_key,
            "{what}"
        );
    }
}

#[tokio::test]
async fn a_key_of_another_certificate_is_400() {
    let server = Server::reused().await;
    let leaf = self_signed_leaf("leaf");
    let ecdsa = self_signed_leaf_with("leaf", &PKCS_ECDSA_P256_SHA256);
    for (certificate, private_key) in [
        (&leaf.certificate, &another_private_key()),
        (&leaf.certificate, &ecdsa.private_key),
        (&ecdsa.certificate, &leaf.private_key),
    ] {
        let value = json!({"certificate": certificate, "private_key": private_key});
        let response = server.set("/a", "certificate", value).await;
        response.expect_error(400, "private_key");
    }
}

#[tokio::test]
async fn an_unreadable_key_is_400_with_or_without_a_certificate() {
    let server = Server::reused().await;
    let key = another_private_key();
    let half = &key[..key.len() / 2];
    let no_pem = "must be a PEM-encoded private key";
    let encrypted = "must not be encrypted";
    for (private_key, rule) in [
        ("garbage", no_pem),
        (VERSION_1_KEY_ENCRYPTED_PKCS1, encrypted),
        (VERSION_1_KEY_ENCRYPTED_PKCS8, encrypted),
        (VERSION_1, no_pem),
        (half, no_pem),
        (
            "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
            "ECDSA key on P-256",
        ),
        (
            "-----BEGIN PRIVATE KEY-----\n!\n-----END PRIVATE KEY-----\n",
            no_pem,
        ),
    ] {
        for value in [
            json!({"certificate": VERSION_1, "private_key": private_key}),
            json!({"private_key": private_key}),
        ] {
            let response = server.set("/a", "certificate", value).await;
            assert!(!response.body.contains(private_key), "{response:?}");
            for words in ["private_key", rule] {
                response.expect_error(400, words);
            }
        }
    }
}

// The response fields of a set certificate.

async fn set(server: &Server, value: Value) -> Value {
    server.stored("/a", "certificate", value).await
}

#[tokio::test]
async fn the_flags_are_read_from_the_certificate() {
    let server = Server::reused().await;
    let root = authority("root");
    let namesake = root.sign_authority("root");
    let leaf = root.sign_leaf("leaf");
    let lone = self_signed_leaf("lone");
    for (what, certificate, is_authority, is_self_signed) in [
        ("a root", &root.certificate, true, true),
        (
            "a root that encodes its name in two ways",
            &authority_encoded_differently("root").certificate,
            true,
            true,
        ),
        (
            "an intermediate with the name of its issuer",
            &namesake.certificate,
            true,
            false,
        ),
        ("a leaf", &leaf.certificate, false, false),
        ("a leaf that signed itself", &lone.certificate, false, false),
    ] {
        let response = set(&server, json!({"certificate": certificate})).await;
        assert_eq!(response["certificate_authority"], is_authority, "{what}");
        assert_eq!(response["self_signed"], is_self_signed, "{what}");
        assert_eq!(response["generated"], false, "{what}");
        assert_eq!(response["transitional"], false, "{what}");
        assert_eq!(response["expiry_date"], "2027-02-05T00:00:00Z", "{what}");
        assert_eq!(response["value"]["ca"], Value::Null, "{what}");
        for detail in "duration_overridden duration_used key_length ca_name".split(' ') {
            assert_eq!(response.get(detail), None, "{what} {detail}");
            assert_eq!(response["value"].get(detail), None, "{what} {detail}");
        }
    }
}

#[tokio::test]
async fn a_certificate_of_x509_version_1_is_accepted() {
    let server = Server::reused().await;
    let response = set(&server, json!({"certificate": VERSION_1})).await;
    assert_eq!(response["certificate_authority"], false);
    assert_eq!(response["self_signed"], false);
    let end = with_certificate(VERSION_1, |certificate| {
        certificate.validity().not_after.timestamp()
    });
    let expiry_date = DateTime::from_timestamp(end, 0).unwrap();
    let expiry_date = expiry_date.format("%Y-%m-%dT%H:%M:%SZ").to_string();
    assert_eq!(response["expiry_date"], expiry_date);
}

#[tokio::test]
async fn an_rsa_key_with_a_composite_factor_is_400() {
    let server = Server::reused().await;
    let key = include_str!("../../../keys/rsa-composite.pem");
    let value = json!({"private_key": key});
    let response = server.set("/a", "certificate", value).await;
    response.expect_error(400, "private_key is malformed: its signatures are wrong");
}
