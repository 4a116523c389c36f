//! Other programs load private keys, derive the same public keys, and sign and verify with them. OpenSSL computes the same
//! hashes of users' passwords: crypt(3) with SHA-512.

use keywright_harness::{Commanded, Options, ReusedServer, Server, Text, is_available};
use serde_json::{Value, json};

use crate::{Files, certificate, openssl};

#[tokio::test]
async fn openssl_checks_rsa_keys_and_derives_the_same_public_key() {
    let server = Server::reused().await;
    for (parameters, bits) in [
        (json!({}), "2048"),
        (json!({"key_length": 3072}), "3072"),
        (json!({"key_length": "4096"}), "4096"),
    ] {
        let name = format!("/{bits}");
        let version = server.generated(&name, "rsa", parameters).await;
        let files = Files::new();
        let key = files.write_field("key", &version, "private_key");
        let verdict = Commanded::run("openssl", &["rsa", "-check", "-noout", "-in", &key], "");
        let verdict = format!("{}{}", verdict.errors, verdict.clone().expect(0).output);
        verdict.assert_contains("RSA key ok");
        let text = openssl(&["rsa", "-in", &key, "-noout", "-text"]);
        text.assert_contains(&format!("Private-Key: ({bits} bit"));
        let public_key = openssl(&["rsa", "-in", &key, "-pubout"]);
        assert_eq!(version["value"]["public_key"], public_key);
    }
}

#[tokio::test]
async fn openssh_derives_the_same_public_key_and_fingerprint() {
    if !is_available("ssh-keygen") {
        return;
    }
    let server = Server::reused().await;
    for (parameters, bits) in [
        (json!({}), "2048"),
        (json!({"ssh_comment": "ada on host"}), "2048"),
        (
            json!({"key_length": 4096, "ssh_comment": "ada@host"}),
            "4096",
        ),
    ] {
        let response = server
            .generate_in_mode("overwrite", "/a", "ssh", parameters)
            .await;
        let version = response.expect(200).json();
        let files = Files::new();
        let private_key = files.write_field("key", &version, "private_key");
        let derived = Commanded::run("ssh-keygen", &["-y", "-f", &private_key], "")
            .expect(0)
            .output;
        let line = version["value"]["public_key"].as_str().unwrap();
        let without_comment: Vec<&str> = line.split(' ').take(2).collect();
        assert_eq!(derived.trim_end(), without_comment.join(" "));

        let public_key = files.write("key.pub", line);
        let arguments = ["-l", "-E", "sha256", "-f", &public_key];
        let listed = Commanded::run("ssh-keygen", &arguments, "")
            .expect(0)
            .output;
        let fingerprint = version["value"]["public_key_fingerprint"].as_str().unwrap();
        let expected = format!("{bits} SHA256:{fingerprint} ");
        assert!(listed.starts_with(&expected), "{listed}, not {expected}");
        assert!(listed.trim_end().ends_with("(RSA)"), "{listed}");
    }
}

#[tokio::test]
async fn openssl_finds_the_key_of_each_type_in_its_certificate() {
    let server = Server::reused().await;
    for (key_type, words) in [
        ("rsa", "Private-Key: (2048 bit"),
        ("ecdsa-p256", "ASN1 OID: prime256v1"),
        ("ecdsa-p384", "ASN1 OID: secp384r1"),
        ("ed25519", "ED25519 Private-Key:"),
    ] {
        let parameters = json!({"common_name": "own", "self_sign": true, "key_type": key_type});
        let version = certificate(&server, "/own", parameters).await;
        let files = Files::new();
        let key = files.write_field("key", &version, "private_key");
        let text = openssl(&["pkey", "-in", &key, "-noout", "-text"]);
        assert!(text.contains(words), "{key_type}: {text}");
        let of_key = openssl(&["pkey", "-in", &key, "-pubout"]);
        let file = files.write_field("certificate", &version, "certificate");
        let of_certificate = openssl(&["x509", "-in", &file, "-noout", "-pubkey"]);
        assert_eq!(of_key, of_certificate, "{key_type}");
    }
}

/// Each kind of key: its type, its parameters without the format, its bits and name in OpenSSH, and OpenSSL's description.
fn kinds() -> [(
    &'static str,
    Value,
    &'static str,
    &'static str,
    &'static str,
); 4] {
    [
        (
            "ed25519",
            json!({}),
            "256",
            "ED25519",
            "ED25519 Private-Key:",
        ),
        ("ecdsa", json!({}), "256", "ECDSA", "ASN1 OID: prime256v1"),
        (
            "ecdsa",
            json!({"curve": "p384"}),
            "384",
            "ECDSA",
            "ASN1 OID: secp384r1",
        ),
        (
            "ecdsa",
            json!({"curve": "p521"}),
            "521",
            "ECDSA",
            "ASN1 OID: secp521r1",
        ),
    ]
}

async fn server() -> ReusedServer {
    Server::reused_with(&Options::default().beyond_the_specification()).await
}

async fn generated(server: &Server, credential_type: &str, parameters: Value) -> Value {
    let name = format!("/{credential_type}");
    let response = server.generate_in_mode("overwrite", &name, credential_type, parameters);
    response.await.expect(200).json()
}

fn ssh_keygen(arguments: &[&str], input: &str) -> String {
    Commanded::run("ssh-keygen", arguments, input)
        .expect(0)
        .output
}

#[tokio::test]
async fn openssh_derives_the_same_elliptic_keys_and_signs_with_them() {
    if !is_available("ssh-keygen") {
        return;
    }
    let server = server().await;
    for (credential_type, mut parameters, bits, name, _) in kinds() {
        parameters["ssh_comment"] = json!("ada on host");
        let version = generated(&server, credential_type, parameters).await;
        let files = Files::new();
        let private_key = files.write_field("key", &version, "private_key");
        let line = version["value"]["public_key"].as_str().unwrap();
        let derived = ssh_keygen(&["-y", "-f", &private_key], "");
        assert_eq!(derived.trim_end(), line);

        let public_key = files.write("key.pub", line);
        let fingerprint = version["value"]["public_key_fingerprint"].as_str().unwrap();
        let expected = format!("{bits} SHA256:{fingerprint} ada on host ({name})");
        for file in [&private_key, &public_key] {
            let listed = ssh_keygen(&["-l", "-E", "sha256", "-f", file], "");
            assert_eq!(listed.trim_end(), expected);
        }

        let message = files.write("message", "signed message");
        ssh_keygen(
            &["-Y", "sign", "-f", &private_key, "-n", "test", &message],
            "",
        );
        let signature = format!("{message}.sig");
        let signers = files.write("signers", &format!("ada {line}\n"));
        let verify = [
            "-Y", "verify", "-f", &signers, "-I", "ada", "-n", "test", "-s", &signature,
        ];
        let verdict = ssh_keygen(&verify, "signed message");
        assert!(
            verdict.starts_with("Good \"test\" signature for ada"),
            "{verdict}"
        );
        let forged = Commanded::run("ssh-keygen", &verify, "another message");
        assert!(
            forged.errors.contains("incorrect signature"),
            "{}",
            forged.errors
        );
    }
}

#[tokio::test]
async fn openssl_derives_the_same_elliptic_keys_and_signs_with_them() {
    let server = server().await;
    for (credential_type, mut parameters, _, _, words) in kinds() {
        parameters["format"] = json!("pkcs8");
        let version = generated(&server, credential_type, parameters).await;
        let files = Files::new();
        let private_key = files.write_field("key", &version, "private_key");
        let public_key = files.write_field("public", &version, "public_key");
        assert_eq!(version["value"]["public_key_fingerprint"], Value::Null);
        if credential_type == "ed25519" {
            // Version 1 without the public key: the beginning of the single line in RFC 8410, section 10.3.
            let pem = version["value"]["private_key"].as_str().unwrap();
            pem.assert_contains("-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEI");
        }
        let text = openssl(&["pkey", "-in", &private_key, "-noout", "-text", "-check"]);
        text.assert_contains("Key is valid");
        text.assert_contains(words);
        let derived = openssl(&["pkey", "-in", &private_key, "-pubout"]);
        assert_eq!(version["value"]["public_key"], derived);

        let message = files.write("message", "signed message");
        let signature = files.path("signature");
        let signature = signature.to_str().unwrap();
        let digest: &[&str] = match credential_type {
            "ed25519" => &[],
            _ => &["-digest", "sha256"],
        };
        let sign = ["pkeyutl", "-sign", "-rawin", "-inkey", &private_key];
        openssl(&[&sign[..], digest, &["-in", &message, "-out", signature]].concat());
        let verify = [
            "pkeyutl",
            "-verify",
            "-rawin",
            "-pubin",
            "-inkey",
            &public_key,
        ];
        let verify = [&verify[..], digest, &["-sigfile", signature, "-in"]].concat();
        let verdict = openssl(&[&verify[..], &[&message]].concat());
        verdict.assert_contains("Signature Verified Successfully");
        let forged = files.write("forged", "another message");
        let forged = Commanded::run("openssl", &[&verify[..], &[&forged]].concat(), "");
        assert!(!forged.is_success(), "{forged:?}");
    }
}

/// Asserts that OpenSSL computes the same hash from the password and the salt.
fn assert_hash_matches(user: &Value) {
    let hash = user["password_hash"].as_str().unwrap();
    let salt = hash.split('$').nth(2).unwrap();
    let password = user["password"].as_str().unwrap();
    let arguments = ["passwd", "-6", "-salt", salt, "-stdin"];
    let computed = Commanded::run("openssl", &arguments, &format!("{password}\n"))
        .expect(0)
        .output;
    assert_eq!(computed.trim_end(), hash, "{password}");
}

#[tokio::test]
async fn openssl_computes_the_same_hash_for_set_and_generated_users() {
    let server = Server::reused().await;
    let long = "x".repeat(200);
    for password in [
        "p",
        "correct horse battery staple",
        "pässword 密码 🔑",
        "-n $6$ \\ '\"",
        &long,
    ] {
        let value = json!({"username": "ada", "password": password});
        let response = server.stored("/a", "user", value).await;
        assert_hash_matches(&response["value"]);
        assert_hash_matches(&server.versions("/a").await[0]["value"]);
    }
    for parameters in [json!({}), json!({"length": 200, "include_special": true})] {
        let response = server
            .generate_in_mode("overwrite", "/generated", "user", parameters)
            .await;
        assert_hash_matches(&response.expect(200).json()["value"]);
        let regenerated = server.regenerated("/generated").await;
        assert_hash_matches(&regenerated["value"]);
    }
}
