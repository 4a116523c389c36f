//! Private keys load in other programs, and their public parts agree.

use keywright_harness::{Program, Server, is_available};
use serde_json::{Value, json};

use crate::files::{Files, certificate, openssl};

/// Asserts that OpenSSL finds a private key in order, and returns its public part, PEM.
fn checked_public_key(files: &Files, version: &Value) -> String {
    let key = files.write_member("key", version, "private_key");
    let verdict = Program::run("openssl", &["rsa", "-check", "-noout", "-in", &key], "");
    let verdict = format!("{}{}", verdict.errors, verdict.clone().expect_success());
    assert!(verdict.contains("RSA key ok"), "{verdict}");
    openssl(&["rsa", "-in", &key, "-pubout"])
}

#[tokio::test]
async fn openssl_checks_rsa_keys_and_derives_their_public_keys() {
    if !is_available("openssl") {
        return;
    }
    let server = Server::start().await;
    for key_length in [2048, 3072, 4096] {
        let name = format!("/{key_length}");
        let parameters = json!({"key_length": key_length});
        let version = server
            .generate(&name, "rsa", parameters)
            .await
            .expect(200)
            .json();
        let public_key = checked_public_key(&Files::new(), &version);
        assert_eq!(version["value"]["public_key"], public_key);
    }
}

#[tokio::test]
async fn openssl_checks_the_key_of_a_certificate() {
    if !is_available("openssl") {
        return;
    }
    let server = Server::start().await;
    certificate(
        &server,
        "/root",
        json!({"common_name": "root", "is_ca": true}),
    )
    .await;
    for parameters in [
        json!({"common_name": "leaf", "ca": "/root", "key_length": 3072}),
        json!({"common_name": "own", "self_sign": true}),
    ] {
        let version = certificate(&server, "/leaf", parameters).await;
        let files = Files::new();
        let public_key = checked_public_key(&files, &version);
        let file = files.write_member("certificate", &version, "certificate");
        assert_eq!(
            openssl(&["x509", "-in", &file, "-noout", "-pubkey"]),
            public_key
        );
    }
}

#[tokio::test]
async fn openssh_loads_ssh_keys_and_agrees_on_public_key_and_fingerprint() {
    if !is_available("ssh-keygen") {
        return;
    }
    let server = Server::start().await;
    for (parameters, bits) in [
        (json!({}), "2048"),
        (json!({"ssh_comment": "ada on host"}), "2048"),
        (
            json!({"key_length": 4096, "ssh_comment": "ada@host"}),
            "4096",
        ),
    ] {
        let answer = server
            .generate_in_mode("overwrite", "/a", "ssh", parameters)
            .await;
        let version = answer.expect(200).json();
        let files = Files::new();
        let private_key = files.write_member("key", &version, "private_key");
        let derived = Program::run("ssh-keygen", &["-y", "-f", &private_key], "").expect_success();
        let line = version["value"]["public_key"].as_str().unwrap();
        let without_comment: Vec<&str> = line.split(' ').take(2).collect();
        assert_eq!(derived.trim_end(), without_comment.join(" "));

        let public_key = files.write("key.pub", line);
        let arguments = ["-l", "-E", "sha256", "-f", &public_key];
        let listed = Program::run("ssh-keygen", &arguments, "").expect_success();
        let fingerprint = version["value"]["public_key_fingerprint"].as_str().unwrap();
        let expected = format!("{bits} SHA256:{fingerprint} ");
        assert!(listed.starts_with(&expected), "{listed}, not {expected}");
        assert!(listed.trim_end().ends_with("(RSA)"), "{listed}");
    }
}

#[tokio::test]
async fn openssh_loads_what_was_regenerated() {
    if !is_available("ssh-keygen") {
        return;
    }
    let server = Server::start().await;
    server
        .generate("/a", "ssh", json!({"ssh_comment": "ada"}))
        .await
        .expect(200);
    let version = server.regenerate("/a").await.expect(200).json();
    let files = Files::new();
    let private_key = files.write_member("key", &version, "private_key");
    let derived = Program::run("ssh-keygen", &["-y", "-f", &private_key], "").expect_success();
    let line = version["value"]["public_key"].as_str().unwrap();
    assert_eq!(line, format!("{} ada", derived.trim_end()));
}

#[tokio::test]
async fn openssl_loads_the_key_of_a_certificate_of_every_type_and_finds_it_in_the_certificate() {
    if !is_available("openssl") {
        return;
    }
    let server = Server::start().await;
    for (key_type, words) in [
        ("rsa", "Private-Key: (2048 bit"),
        ("ecdsa-p256", "ASN1 OID: prime256v1"),
        ("ecdsa-p384", "ASN1 OID: secp384r1"),
        ("ed25519", "ED25519 Private-Key:"),
    ] {
        let parameters = json!({"common_name": "own", "self_sign": true, "key_type": key_type});
        let version = certificate(&server, "/own", parameters).await;
        let files = Files::new();
        let key = files.write_member("key", &version, "private_key");
        let text = openssl(&["pkey", "-in", &key, "-noout", "-text"]);
        assert!(text.contains(words), "{key_type}: {text}");
        let of_key = openssl(&["pkey", "-in", &key, "-pubout"]);
        let file = files.write_member("certificate", &version, "certificate");
        let of_certificate = openssl(&["x509", "-in", &file, "-noout", "-pubkey"]);
        assert_eq!(of_key, of_certificate, "{key_type}");
    }
}
