//! Requests, and the regeneration of passwords, users and keys.

use base64::{Engine, prelude::BASE64_STANDARD};
use keywright_harness::{Server, Text};
use serde_json::{Value, json};

use crate::{
    given,
    keys::{der, public_key_bits},
};

// Properties of requests that are independent of the type.

#[tokio::test]
async fn a_version_is_added_with_a_new_value() {
    let server = Server::reused().await;
    for (credential_type, parameters) in given::generatable() {
        let name = format!("/{credential_type}");
        let made = server.generated(&name, credential_type, parameters).await;
        let regenerated = server.regenerated(&name).await;
        assert_eq!(regenerated["type"], credential_type);
        assert_eq!(regenerated["name"], *name);
        assert_ne!(regenerated["id"], made["id"], "{credential_type}");
        assert_ne!(regenerated["value"], made["value"], "{credential_type}");
        let versions = server.versions(&name).await;
        assert_eq!(versions.len(), 2);
        assert_eq!(versions[0]["value"], regenerated["value"]);
        assert_eq!(versions[1]["value"], made["value"]);
    }
}

#[tokio::test]
async fn value_and_json_cannot_be_regenerated() {
    let server = Server::reused().await;
    server.set_value("/value", "v").await;
    server.stored("/json", "json", json!({})).await;
    for name in ["/value", "/json"] {
        server.regenerate(name).await.expect(400).error();
        assert_eq!(server.versions(name).await.len(), 1);
    }
}

// Passwords and users.

#[tokio::test]
async fn a_password_keeps_its_length_and_its_character_sets() {
    let server = Server::reused().await;
    let parameters = json!({
        "length": 42, "exclude_upper": true, "exclude_number": true, "include_special": true,
    });
    server.generated("/a", "password", parameters).await;
    for _ in 0..3 {
        let password = server.regenerated("/a").await["value"].clone();
        let password = password.as_str().unwrap();
        assert_eq!(password.len(), 42);
        assert!(password.contains(|character: char| character.is_ascii_punctuation()));
        assert!(password.contains(|character: char| character.is_ascii_lowercase()));
        let excluded = |character: char| character.is_ascii_uppercase() || character.is_numeric();
        assert!(!password.contains(excluded), "{password}");
    }
}

#[tokio::test]
async fn a_user_keeps_its_name_and_gets_a_new_password_and_hash() {
    let server = Server::reused().await;
    for (name, parameters) in [
        ("/named", json!({"username": "ada", "length": 12})),
        ("/unnamed", json!({"length": 12})),
    ] {
        let made = server.generated(name, "user", parameters).await;
        let mut previous = made["value"].clone();
        for _ in 0..2 {
            let user = server.regenerated(name).await["value"].clone();
            assert_eq!(user["username"], made["value"]["username"]);
            assert_eq!(user["password"].as_str().unwrap().len(), 12);
            for field in ["password", "password_hash"] {
                assert_ne!(user[field], previous[field], "{field}");
            }
            assert_ne!(salt(&user), salt(&previous));
            previous = user;
        }
    }
}

/// Returns the salt in the hash of a user's password.
fn salt(user: &Value) -> &str {
    let hash = user["password_hash"].as_str().unwrap();
    hash.split('$').nth(2).unwrap()
}

#[tokio::test]
async fn set_values_cannot_be_regenerated() {
    let server = Server::reused().await;
    server.stored("/password", "password", json!("p")).await;
    let value = json!({"username": "ada", "password": "p"});
    server.stored("/user", "user", value).await;
    for name in ["/password", "/user"] {
        let error = server.regenerate(name).await.expect(400).error();
        error.assert_contains("; generate the credential in mode overwrite instead");
        assert_eq!(server.versions(name).await.len(), 1);
    }
}

#[tokio::test]
async fn only_the_newest_version_determines_the_parameters() {
    let server = Server::reused().await;
    let parameters = json!({"length": 12});
    server.generated("/a", "password", parameters).await;
    server.stored("/a", "password", json!("p")).await;
    server.regenerate("/a").await.expect(400).error();
    let parameters = json!({"length": 13});
    server.generated("/a", "password", parameters).await;
    let regenerated = server.regenerated("/a").await;
    assert_eq!(regenerated["value"].as_str().unwrap().len(), 13);
}

// RSA and SSH keys.

async fn regenerated(server: &Server, name: &str) -> Value {
    server.regenerated(name).await["value"].clone()
}

/// Returns the length of the base64 part of an SSH public key, which grows with the key.
fn blob_length(key: &Value) -> usize {
    let line = key["public_key"].as_str().unwrap();
    line.split(' ').nth(1).unwrap().len()
}

#[tokio::test]
async fn generated_and_set_keys_keep_their_length() {
    let server = Server::reused().await;
    for key_length in [2048, 3072] {
        let name = format!("/{key_length}");
        let parameters = json!({"key_length": key_length});
        let made = server.generated(&name, "rsa", parameters).await;
        let public_key = made["value"]["public_key"].as_str().unwrap();
        let pkcs1 = json!({"public_key": as_pkcs1(public_key)});
        let private = json!({"private_key": made["value"]["private_key"]});
        for (set, value) in [
            ("/set", made["value"].clone()),
            ("/pkcs1", pkcs1),
            ("/private", private),
        ] {
            server.stored(set, "rsa", value).await;
        }
        for name in [&name, "/set", "/pkcs1", "/private"] {
            let key = regenerated(&server, name).await;
            let bits = public_key_bits(key["public_key"].as_str().unwrap());
            assert_eq!(bits, key_length, "{name}");
        }
    }
}

/// Converts a public RSA key from SPKI to PKCS #1, in lines of 76 characters with line breaks of Windows.
fn as_pkcs1(public_key: &str) -> String {
    /// The DER before the PKCS #1 structure.
    const SPKI_HEADER_BYTES: usize = 24;
    let pkcs1 = BASE64_STANDARD.encode(&der(public_key)[SPKI_HEADER_BYTES..]);
    let lines: Vec<_> = pkcs1.as_bytes().chunks(76).map(<[u8]>::to_vec).collect();
    let body = String::from_utf8(lines.join(&b"\r\n"[..])).unwrap();
    format!("-----BEGIN RSA PUBLIC KEY-----\r\n{body}\r\n-----END RSA PUBLIC KEY-----\r\n")
}

#[tokio::test]
async fn an_ssh_key_keeps_its_length_and_its_comment() {
    let server = Server::reused().await;
    let with_comment = json!({"key_length": 3072, "ssh_comment": "ada on host"});
    for (name, parameters, comment) in [
        ("/a", with_comment, Some("ada on host")),
        ("/b", json!({"key_length": 2048}), None),
    ] {
        let made = server.generated(name, "ssh", parameters).await;
        let set_name = format!("/set{name}");
        server.stored(&set_name, "ssh", made["value"].clone()).await;
        for name in [name, &set_name] {
            let key = regenerated(&server, name).await;
            assert_eq!(blob_length(&key), blob_length(&made["value"]));
            let line = key["public_key"].as_str().unwrap();
            assert_eq!(line.splitn(3, ' ').nth(2), comment);
            assert!(key["public_key_fingerprint"].is_string());
        }
        let private = json!({"private_key": made["value"]["private_key"]});
        server.stored("/private", "ssh", private).await;
        let key = regenerated(&server, "/private").await;
        assert_eq!(blob_length(&key), blob_length(&made["value"]));
    }
}

const RSA_1024: &str = "-----BEGIN PUBLIC KEY-----
MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDBo4FV3n2RcDsszxLG7dz14SCJ
DNLKE1J84t52WxN3RJACmVHQdAjRXlio4MKHSOjKkEGm9ZicsTI7GHcyTj0AOC5s
+NH4dk17aTWa3MXobSbBCw45tdUeH9MvrcJ/rcp7tbN0YDhPlA01tdBC27TOC69t
FOkx3JpI0T9hpnBCWwIDAQAB
-----END PUBLIC KEY-----
";

#[tokio::test]
async fn an_unreadable_key_is_regenerated_with_defaults() {
    let server = Server::reused().await;
    for (credential_type, value) in [
        ("rsa", json!({"private_key": "private"})),
        ("rsa", json!({"public_key": "no key"})),
        ("rsa", json!({"public_key": RSA_1024})),
        ("ssh", json!({"private_key": "private"})),
        ("ssh", json!({"public_key": "no key"})),
        ("ssh", json!({"public_key": "ssh-rsa !!!!"})),
    ] {
        let name = format!("/{credential_type}");
        server.stored(&name, credential_type, value).await;
        let key = regenerated(&server, &name).await;
        if credential_type == "rsa" {
            assert_eq!(public_key_bits(key["public_key"].as_str().unwrap()), 2048);
        } else {
            assert_eq!(blob_length(&key), 372);
        }
    }
}
