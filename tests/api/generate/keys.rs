//! RSA and SSH keys.

use base64::{Engine, prelude::BASE64_STANDARD};
use keywright_harness::Server;
use serde_json::{Value, json};

use crate::{given, keys::assert_is_pem};

// RSA keys, and the key lengths that ssh keys share with them.

#[tokio::test]
async fn the_public_key_is_spki_and_the_private_key_pkcs1() {
    let server = Server::reused().await;
    let key = server.generated("/a", "rsa", json!({})).await["value"].clone();
    assert_is_pem(key["public_key"].as_str().unwrap(), "PUBLIC KEY");
    assert_is_pem(key["private_key"].as_str().unwrap(), "RSA PRIVATE KEY");
    assert_eq!(key.as_object().unwrap().len(), 2);
}

#[tokio::test]
async fn any_other_key_length_is_400() {
    let server = Server::reused().await;
    for credential_type in ["rsa", "ssh"] {
        for key_length in given::each(json!([
            0,
            -2048,
            1024,
            2047,
            2049,
            8192,
            18_446_744_073_709_551_615_u64,
            2048.5,
            "long",
            null
        ])) {
            let parameters = json!({"key_length": key_length});
            let response = server.generate("/a", credential_type, parameters).await;
            response.expect_error(400, "key_length");
        }
    }
}

// SSH keys.

async fn generated(server: &Server, parameters: Value) -> Value {
    let response = server
        .generate_in_mode("overwrite", "/a", "ssh", parameters)
        .await;
    response.expect(200).json()["value"].clone()
}

#[tokio::test]
async fn the_public_key_is_a_line_that_ends_in_the_comment() {
    let server = Server::reused().await;
    let comments = ["", "ada@host", "ada on the host", "adä 🔑"].map(Some);
    for comment in [None].into_iter().chain(comments) {
        let parameters = comment.map_or(json!({}), |comment| json!({"ssh_comment": comment}));
        let comment = comment.filter(|comment| !comment.is_empty());
        let key = generated(&server, parameters).await;
        let line = key["public_key"].as_str().unwrap();
        let mut parts = line.splitn(3, ' ');
        assert_eq!(parts.next(), Some("ssh-rsa"));
        let blob = BASE64_STANDARD.decode(parts.next().unwrap()).unwrap();
        assert!(blob.starts_with(b"\0\0\0\x07ssh-rsa\0\0\0\x03\x01\0\x01"));
        assert_eq!(parts.next(), comment);
        assert!(!line.contains('\n'));
        assert_is_pem(key["private_key"].as_str().unwrap(), "RSA PRIVATE KEY");
    }
}

#[tokio::test]
async fn a_comment_cannot_add_a_second_line() {
    let server = Server::reused().await;
    for comment in given::each(json!([
        "a\nssh-rsa AAAA forged",
        "a\r",
        "a\0b",
        "\u{85}",
        [7]
    ])) {
        let parameters = json!({"ssh_comment": comment});
        let response = server.generate("/a", "ssh", parameters).await;
        response.expect(400).error();
    }
}
