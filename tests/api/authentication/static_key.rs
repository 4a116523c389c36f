//! A server that verifies tokens with a configured key and without a provider.

use std::fs;

use jsonwebtoken::{Algorithm, EncodingKey};
use keywright_harness::{Options, Program, Server, key_file};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::mint::{expect_refused, present, seconds_since_epoch, sign, signing_key};

const ISSUER: &str = "https://issuer.example/oauth/token";

#[tokio::test]
async fn a_configured_key_verifies_tokens_without_a_provider() {
    let rsa = fs::read_to_string(key_file("token-signing-key.pem")).unwrap();
    let p256 = private_key(&["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"]);
    let ec_key = EncodingKey::from_ec_pem(p256.as_bytes()).unwrap();
    for (public_key, key, algorithm, other_algorithm) in [
        (
            public(&rsa, &["pkey", "-pubout"]),
            signing_key(),
            Algorithm::RS256,
            "ES256",
        ),
        (
            public(&rsa, &["rsa", "-RSAPublicKey_out"]),
            signing_key(),
            Algorithm::RS256,
            "ES256",
        ),
        (
            public(&p256, &["pkey", "-pubout"]),
            ec_key,
            Algorithm::ES256,
            "RS256",
        ),
    ] {
        let directory = TempDir::new().unwrap();
        fs::write(directory.path().join("key.pem"), public_key).unwrap();
        let server = Server::start_in(directory, &options("key.pem")).await;
        let name = format!("{algorithm:?}");
        let token = |header: Value, issuer: &str| sign(&header, &claims(issuer), algorithm, &key);
        for header in [json!({"alg": name}), json!({"alg": name, "kid": "any"})] {
            present(&server, &token(header, ISSUER)).await.expect(200);
        }
        for issuer in [
            "https://issuer.example",
            "https://issuer.example/oauth/token/",
            "",
        ] {
            let token = token(json!({"alg": name}), issuer);
            expect_refused(&server, &token, "invalid_token", issuer).await;
        }
        let confused = token(json!({"alg": other_algorithm}), ISSUER);
        expect_refused(&server, &confused, "invalid_token", &name).await;
    }
}

#[test]
fn an_unusable_configured_key_is_refused_at_start() {
    let p384 = private_key(&["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-384"]);
    let short = private_key(&["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:1024"]);
    let ed25519 = private_key(&["-algorithm", "ED25519"]);
    let rsa = fs::read_to_string(key_file("token-signing-key.pem")).unwrap();
    let neither = "neither an RSA nor a P-256 public key";
    for (content, expected) in [
        (fs::read_to_string(key_file("server.pem")).unwrap(), neither),
        (rsa, neither),
        (public(&p384, &["pkey", "-pubout"]), neither),
        (public(&ed25519, &["pkey", "-pubout"]), neither),
        (
            public(&short, &["pkey", "-pubout"]),
            "must have 2048 to 8192 bits",
        ),
        (
            "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n".to_owned(),
            neither,
        ),
        (String::new(), neither),
    ] {
        let directory = TempDir::new().unwrap();
        let file = directory.path().join("key.pem");
        fs::write(&file, &content).unwrap();
        let log = Server::refusal(&options(file.to_str().unwrap()));
        assert!(log.contains(expected), "{content}: {log}");
    }
}

fn claims(issuer: &str) -> Value {
    json!({
        "iss": issuer,
        "exp": seconds_since_epoch() + 600,
        "client_id": "developer",
        "grant_type": "client_credentials",
        "scope": ["credhub.read", "credhub.write"],
    })
}

fn private_key(kind: &[&str]) -> String {
    Program::run("openssl", &[&["genpkey"], kind].concat(), "").expect_success()
}

fn public(private_key: &str, command: &[&str]) -> String {
    Program::run("openssl", command, private_key).expect_success()
}

fn options(public_key: &str) -> Options {
    Options::default()
        .identity_provider("https://127.0.0.1:1/identity")
        .extra(&format!(
            "[authentication.static_key]\npublic_key = \"{public_key}\"\nissuer = \"{ISSUER}\"\n"
        ))
}
