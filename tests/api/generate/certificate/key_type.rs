//! The types of keys.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test ends when what it needs is not there"
)]

use keywright_harness::{Answer, Server};
use serde_json::{Value, json};

use crate::{
    keys::{assert_is_pem, with_certificate},
    made_elsewhere::authority_with,
};

/// Each type, the length of its keys, the label of its private keys, and the algorithm of its signatures.
const KEY_TYPES: [(&str, usize, &str, &str); 4] = [
    ("rsa", 2048, "RSA PRIVATE KEY", "1.2.840.113549.1.1.11"),
    ("ecdsa-p256", 256, "PRIVATE KEY", "1.2.840.10045.4.3.2"),
    ("ecdsa-p384", 384, "PRIVATE KEY", "1.2.840.10045.4.3.3"),
    ("ed25519", 256, "PRIVATE KEY", "1.3.101.112"),
];

fn root(key_type: &str) -> Value {
    json!({"common_name": "root", "is_ca": true, "key_type": key_type})
}

async fn generate(server: &Server, name: &str, parameters: Value) -> Answer {
    server
        .generate_in_mode("overwrite", name, "certificate", parameters)
        .await
}

fn signature_algorithm(version: &Value) -> String {
    let certificate = version["value"]["certificate"].as_str().unwrap();
    with_certificate(certificate, |certificate| {
        certificate.signature_algorithm.algorithm.to_id_string()
    })
}

#[tokio::test]
async fn each_type_has_its_own_key_and_signature_algorithm() {
    let server = Server::start().await;
    for (key_type, bits, label, algorithm) in KEY_TYPES {
        let version = generate(&server, "/root", root(key_type))
            .await
            .expect(200)
            .json();
        assert_eq!(version["key_length"], bits, "{key_type}");
        assert_is_pem(version["value"]["private_key"].as_str().unwrap(), label);
        assert_eq!(signature_algorithm(&version), algorithm, "{key_type}");
        assert_eq!(version["self_signed"], true, "{key_type}");
    }
}

#[tokio::test]
async fn the_cas_own_key_determines_the_signature_algorithm() {
    let server = Server::start().await;
    for (of_root, _, _, algorithm) in KEY_TYPES {
        generate(&server, "/root", root(of_root)).await.expect(200);
        for (of_leaf, bits, ..) in KEY_TYPES {
            let parameters = json!({"common_name": "leaf", "ca": "/root", "key_type": of_leaf});
            let leaf = generate(&server, "/leaf", parameters)
                .await
                .expect(200)
                .json();
            assert_eq!(signature_algorithm(&leaf), algorithm, "{of_root} {of_leaf}");
            assert_eq!(leaf["key_length"], bits, "{of_root} {of_leaf}");
        }
    }
}

#[tokio::test]
async fn a_set_ca_of_every_key_type_signs() {
    let server = Server::start().await;
    for (what, algorithm) in [
        ("P-256", &rcgen::PKCS_ECDSA_P256_SHA256),
        ("P-384", &rcgen::PKCS_ECDSA_P384_SHA384),
        ("P-521", &rcgen::PKCS_ECDSA_P521_SHA512),
        ("Ed25519", &rcgen::PKCS_ED25519),
    ] {
        let root = authority_with("root", algorithm);
        let value = json!({"certificate": root.certificate, "private_key": root.private_key});
        server.set("/root", "certificate", value).await.expect(200);
        let parameters = json!({"common_name": "leaf", "ca": "/root"});
        let leaf = generate(&server, "/leaf", parameters).await;
        assert_eq!(leaf.status, 200, "{what}: {}", leaf.body);
        assert_eq!(leaf.json()["value"]["ca"], root.certificate, "{what}");
    }
}

#[tokio::test]
async fn an_unknown_key_type_or_an_inapplicable_length_is_400() {
    let server = Server::start().await;
    for (parameters, parts) in [
        (json!({"key_type": "dsa"}), &["key_type", "ecdsa-p384"][..]),
        (json!({"key_type": "RSA"}), &["key_type"]),
        (json!({"key_type": "ecdsa-p521"}), &["key_type"]),
        (json!({"key_type": 7}), &["key_type"]),
        (
            json!({"key_type": "ecdsa-p256", "key_length": 256}),
            &["key_length", "only allowed for keys of type rsa"],
        ),
        (
            json!({"key_type": "ed25519", "key_length": 2048}),
            &["key_length"],
        ),
        (
            json!({"key_type": "rsa", "key_length": 256}),
            &["key_length"],
        ),
    ] {
        let mut sent = json!({"common_name": "leaf", "self_sign": true});
        for (name, value) in parameters.as_object().unwrap() {
            sent[name] = value.clone();
        }
        let error = generate(&server, "/a", sent).await.expect(400).error();
        for part in parts {
            assert!(error.contains(part), "{part} is not in: {error}");
        }
    }
    for absent in [json!(""), Value::Null] {
        let sent = json!({"common_name": "leaf", "self_sign": true, "key_type": absent});
        let version = generate(&server, "/a", sent).await.expect(200).json();
        assert_eq!(version["key_length"], 2048);
    }
}

#[tokio::test]
async fn the_type_of_the_key_is_compared_and_the_default_is_rsa() {
    let server = Server::start().await;
    let with = |key_type: &str| json!({"common_name": "a", "is_ca": true, "key_type": key_type});
    let plain = json!({"common_name": "a", "is_ca": true});
    for (first, then, is_kept) in [
        (plain.clone(), with("rsa"), true),
        (with("rsa"), plain.clone(), true),
        (with("ecdsa-p256"), with("ecdsa-p256"), true),
        (with("ed25519"), with("ed25519"), true),
        (plain.clone(), with("ecdsa-p256"), false),
        (with("ecdsa-p256"), plain.clone(), false),
        (with("ecdsa-p256"), with("ecdsa-p384"), false),
        (with("ecdsa-p256"), with("ed25519"), false),
    ] {
        let made = generate(&server, "/a", first.clone())
            .await
            .expect(200)
            .json();
        let answer = server.generate("/a", "certificate", then.clone()).await;
        let answer = answer.expect(200).json();
        assert_eq!(answer["id"] == made["id"], is_kept, "{first} {then}");
    }
}

#[tokio::test]
async fn a_regenerated_certificate_has_the_same_key_type() {
    let server = Server::start().await;
    for (key_type, bits, label, algorithm) in KEY_TYPES {
        let made = generate(&server, "/root", root(key_type))
            .await
            .expect(200)
            .json();
        let regenerated = server.regenerate("/root").await.expect(200).json();
        assert_ne!(
            regenerated["value"]["private_key"],
            made["value"]["private_key"]
        );
        assert_eq!(regenerated["key_length"], bits, "{key_type}");
        assert_is_pem(regenerated["value"]["private_key"].as_str().unwrap(), label);
        assert_eq!(signature_algorithm(&regenerated), algorithm, "{key_type}");
    }
}

#[tokio::test]
async fn a_key_usage_unsuitable_for_the_key_type_is_400_and_named() {
    let server = Server::start().await;
    let of_ecdsa = ["key_encipherment", "data_encipherment"];
    let of_ed25519 = [
        "key_encipherment",
        "data_encipherment",
        "key_agreement",
        "encipher_only",
        "decipher_only",
    ];
    for (key_type, refused) in [
        ("rsa", &[][..]),
        ("ecdsa-p256", &of_ecdsa),
        ("ecdsa-p384", &of_ecdsa),
        ("ed25519", &of_ed25519),
    ] {
        for usage in of_ed25519 {
            let mut parameters = root(key_type);
            parameters["key_usage"] = json!(["digital_signature", usage]);
            let answer = generate(&server, &format!("/{key_type}/{usage}"), parameters).await;
            if refused.contains(&usage) {
                let error = answer.expect(400).error();
                for part in ["key_usage", usage, key_type] {
                    assert!(error.contains(part), "{part} is not in: {error}");
                }
            } else {
                answer.expect(200);
            }
        }
    }
}
