//! A server that checks tokens with a key of its configuration, and asks no provider.

use std::fs;

use keywright_harness::{Options, Program, Server, key_file};
use serde_json::json;

use super::mint::{Mint, present};

const ISSUER: &str = "https://issuer.example/oauth/token";

#[tokio::test]
async fn a_configured_key_checks_tokens_though_no_provider_answers() {
    let provider = Server::start().await;
    let public_key = provider.directory().join("token-public-key.pem");
    let signing_key = key_file("token-signing-key.pem");
    let arguments = ["pkey", "-pubout", "-in", signing_key.to_str().unwrap()];
    let pem = Program::run("openssl", &arguments, "").expect_success();
    fs::write(&public_key, pem).unwrap();
    let server = Server::start_with(&options(public_key.to_str().unwrap())).await;

    let mint = Mint::of(&provider).await;
    for (issuer, status) in [(ISSUER, 200), ("https://issuer.example", 401), ("", 401)] {
        let token = mint.token(&mint.claims_with("iss", json!(issuer)));
        let answer = present(&server, &token).await;
        assert_eq!(answer.status, status, "{issuer}: {answer:?}");
    }
    assert_eq!(
        present(&server, provider.token()).await.expect(401).error(),
        "invalid_token"
    );
}

#[tokio::test]
async fn a_configured_key_that_is_none_is_refused_at_start() {
    let certificate = key_file("server.pem");
    let log = Server::refusal(&options(certificate.to_str().unwrap()));
    assert!(log.contains("key"), "{log}");
}

fn options(public_key: &str) -> Options {
    Options::default()
        .identity_provider("https://127.0.0.1:1/identity")
        .extra(&format!(
            "[authentication.static_key]\npublic_key = \"{public_key}\"\nissuer = \"{ISSUER}\"\n"
        ))
}
