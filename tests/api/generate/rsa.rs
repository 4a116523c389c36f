//! RSA keys, and the key lengths that ssh keys share with them.

use keywright_harness::Server;
use serde_json::{Value, json};

use crate::keys::{assert_is_pem, public_key_bits};

#[tokio::test]
async fn a_key_has_2048_bits_by_default() {
    let server = Server::start().await;
    for (parameters, bits) in [
        (json!({}), 2048),
        (json!({"key_length": 2048}), 2048),
        (json!({"key_length": 3072}), 3072),
        (json!({"key_length": "4096"}), 4096),
    ] {
        let key = server
            .generate_in_mode("overwrite", "/a", "rsa", parameters)
            .await;
        let key = key.expect(200).json()["value"].clone();
        assert_eq!(public_key_bits(key["public_key"].as_str().unwrap()), bits);
    }
}

#[tokio::test]
async fn the_public_key_is_spki_and_the_private_key_pkcs1() {
    let server = Server::start().await;
    let key = server
        .generate("/a", "rsa", json!({}))
        .await
        .expect(200)
        .json()["value"]
        .clone();
    assert_is_pem(key["public_key"].as_str().unwrap(), "PUBLIC KEY");
    assert_is_pem(key["private_key"].as_str().unwrap(), "RSA PRIVATE KEY");
    assert_eq!(key.as_object().unwrap().len(), 2);
}

#[tokio::test]
async fn any_other_key_length_is_400() {
    let server = Server::start().await;
    for credential_type in ["rsa", "ssh"] {
        for key_length in [
            json!(0),
            json!(-2048),
            json!(1024),
            json!(2047),
            json!(2049),
            json!(8192),
            json!(18_446_744_073_709_551_615_u64),
            json!(2048.5),
            json!("long"),
            Value::Null,
        ] {
            let parameters = json!({"key_length": key_length});
            let error = server
                .generate("/a", credential_type, parameters)
                .await
                .expect(400)
                .error();
            assert!(error.contains("key_length"), "{credential_type}: {error}");
        }
    }
}
