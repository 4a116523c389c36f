//! The private key of a certificate.

use keywright_harness::Server;
use rcgen::{PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ECDSA_P521_SHA512, PKCS_ED25519};
use serde_json::json;

use super::VERSION_1;
use crate::made_elsewhere::{another_private_key, self_signed_leaf, self_signed_leaf_with};

const VERSION_1_KEY_PKCS1: &str = include_str!("made_by_openssl/version-1-key.pkcs1.pem");
const VERSION_1_KEY_ENCRYPTED_PKCS1: &str =
    include_str!("made_by_openssl/version-1-key.encrypted-pkcs1.pem");
const VERSION_1_KEY_ENCRYPTED_PKCS8: &str =
    include_str!("made_by_openssl/version-1-key.encrypted-pkcs8.pem");
const ECDSA: &str = include_str!("made_by_openssl/ecdsa.pem");
const ECDSA_KEY_SEC1: &str = include_str!("made_by_openssl/ecdsa-key.sec1.pem");

#[tokio::test]
async fn keys_of_every_common_algorithm_and_form_are_kept_as_sent() {
    let server = Server::start().await;
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
        let answer = server.set("/a", "certificate", value).await;
        assert_eq!(answer.status, 200, "{what}: {}", answer.body);
        assert_eq!(answer.json()["value"]["private_key"], private_key, "{what}");
    }
}

#[tokio::test]
async fn a_key_of_another_certificate_is_400() {
    let server = Server::start().await;
    let leaf = self_signed_leaf("leaf");
    let ecdsa = self_signed_leaf_with("leaf", &PKCS_ECDSA_P256_SHA256);
    for (certificate, private_key) in [
        (&leaf.certificate, &another_private_key()),
        (&leaf.certificate, &ecdsa.private_key),
        (&ecdsa.certificate, &leaf.private_key),
    ] {
        let value = json!({"certificate": certificate, "private_key": private_key});
        let error = server
            .set("/a", "certificate", value)
            .await
            .expect(400)
            .error();
        assert!(error.contains("private_key"), "{error}");
    }
}

#[tokio::test]
async fn an_unreadable_key_is_400_with_or_without_a_certificate() {
    let server = Server::start().await;
    let key = another_private_key();
    let half = &key[..key.len() / 2];
    for (what, private_key) in [
        ("garbage", "garbage"),
        ("encrypted PKCS#1", VERSION_1_KEY_ENCRYPTED_PKCS1),
        ("encrypted PKCS#8", VERSION_1_KEY_ENCRYPTED_PKCS8),
        ("a certificate", VERSION_1),
        ("half a key", half),
        (
            "no key in its frame",
            "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
        ),
    ] {
        for value in [
            json!({"certificate": VERSION_1, "private_key": private_key}),
            json!({"private_key": private_key}),
        ] {
            let answer = server.set("/a", "certificate", value).await;
            assert_eq!(answer.status, 400, "{what}: {}", answer.body);
            assert!(
                answer.error().contains("private_key"),
                "{what}: {}",
                answer.body
            );
            assert!(!answer.body.contains(private_key), "{what}");
        }
    }
}
