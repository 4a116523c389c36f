//! The CA that signs, and the types of keys.

use keywright_harness::{Response, Server, Text};
use rcgen::{DnType, DnValue, KeyIdMethod};
use serde_json::{Value, json};
use x509_parser::extensions::ParsedExtension;

use crate::{
    external_certificates::authority_changed,
    keys::{assert_is_pem, with_certificate},
};

#[tokio::test]
async fn the_ca_name_matches_without_slash_and_in_any_casing() {
    let server = Server::reused().await;
    let root = server.generate_authority("/Path/Root", None).await;
    let mut made = None;
    for ca in ["/Path/Root", "Path/Root", "path/ROOT"] {
        let leaf = server.issued("/leaf", json!({"ca": ca})).await;
        assert_eq!(leaf["value"]["ca"], root["value"]["certificate"]);
        let first = made.get_or_insert_with(|| leaf["id"].clone());
        assert_eq!(&leaf["id"], first, "{ca}");
    }
}

#[tokio::test]
async fn a_leaf_may_outlive_its_ca() {
    let server = Server::reused().await;
    let root = json!({"is_ca": true, "duration": 1});
    let root = server.issued("/root", root).await;
    let leaf = json!({"ca": "/root", "duration": 3_650});
    let leaf = server.issued("/leaf", leaf).await;
    assert!(leaf["expiry_date"].as_str() > root["expiry_date"].as_str());
}

/// The server copies the subject and the key identifier from the CA's certificate, so unusual encodings are preserved.
#[tokio::test]
async fn leaves_copy_the_encoded_name_and_key_id_of_a_set_ca() {
    let server = Server::reused().await;
    let key_identifier = vec![7, 6, 5, 4, 3];
    let root = authority_changed("root", |parameters| {
        let name = &mut parameters.distinguished_name;
        let wide = DnValue::BmpString("Ämter".try_into().unwrap());
        name.push(DnType::OrganizationName, wide);
        let old = DnValue::TeletexString("old".try_into().unwrap());
        name.push(DnType::LocalityName, old);
        parameters.key_identifier_method = KeyIdMethod::PreSpecified(key_identifier.clone());
    });
    server.stored("/root", "certificate", root.value()).await;
    let parameters = json!({"common_name": "leaf", "ca": "/root", "key_type": "ecdsa-p256"});
    let made = server.generated("/leaf", "certificate", parameters).await;
    let regenerated = server.regenerated("/leaf").await;
    let subject = with_certificate(&root.certificate, |root| root.subject().as_raw().to_vec());
    for version in [made, regenerated] {
        with_certificate(version["value"]["certificate"].as_str().unwrap(), |leaf| {
            assert_eq!(leaf.issuer().as_raw(), subject);
            let found =
                leaf.extensions()
                    .iter()
                    .find_map(|extension| match extension.parsed_extension() {
                        ParsedExtension::AuthorityKeyIdentifier(id) => id.key_identifier.as_ref(),
                        _ => None,
                    });
            assert_eq!(found.map(|id| id.0), Some(key_identifier.as_slice()));
        });
    }
}

// The types of keys.

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

async fn generate(server: &Server, name: &str, parameters: Value) -> Response {
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
    let server = Server::reused().await;
    for (key_type, bits, label, algorithm) in KEY_TYPES {
        let made = generate(&server, "/root", root(key_type)).await;
        let regenerated = server.regenerate("/root").await;
        for version in [made, regenerated].map(|response| response.expect(200).json()) {
            assert_eq!(version["key_length"], bits, "{key_type}");
            let text = |field: &str| version["value"][field].as_str().unwrap().to_owned();
            assert_is_pem(&text("private_key"), label);
            assert_is_pem(&text("certificate"), "CERTIFICATE");
            assert_eq!(signature_algorithm(&version), algorithm, "{key_type}");
            assert_eq!(version["self_signed"], true, "{key_type}");
        }
    }
}

#[tokio::test]
async fn the_key_of_the_ca_determines_the_signature_algorithm() {
    let server = Server::reused().await;
    for (of_root, _, _, algorithm) in KEY_TYPES {
        generate(&server, "/root", root(of_root)).await.expect(200);
        for (of_leaf, bits, ..) in KEY_TYPES {
            let parameters = json!({"common_name": "leaf", "ca": "/root", "key_type": of_leaf});
            let response = generate(&server, "/leaf", parameters).await;
            let leaf = response.expect(200).json();
            assert_eq!(signature_algorithm(&leaf), algorithm, "{of_root} {of_leaf}");
            assert_eq!(leaf["key_length"], bits, "{of_root} {of_leaf}");
        }
    }
}

#[tokio::test]
async fn an_unknown_key_type_or_an_inapplicable_length_is_400() {
    let server = Server::reused().await;
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
            error.assert_contains(part);
        }
    }
    for absent in [json!(""), Value::Null] {
        let sent = json!({"common_name": "leaf", "self_sign": true, "key_type": absent});
        let version = generate(&server, "/a", sent).await.expect(200).json();
        assert_eq!(version["key_length"], 2048);
    }
}

#[tokio::test]
async fn a_key_usage_unsuitable_for_the_key_type_is_400_and_named() {
    let server = Server::reused().await;
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
            let response = generate(&server, &format!("/{key_type}/{usage}"), parameters).await;
            if refused.contains(&usage) {
                let error = response.expect(400).error();
                for part in ["key_usage", usage, key_type] {
                    error.assert_contains(part);
                }
            } else {
                response.expect(200);
            }
        }
    }
}
