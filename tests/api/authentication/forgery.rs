//! Tokens without a signature by a trusted key.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use jsonwebtoken::{Algorithm, EncodingKey};
use keywright_harness::{Program, Server, key_file};
use reqwest::Method;
use serde_json::{Value, json};

use super::mint::{
    Mint, encode, expect_refused, other_key, seconds_since_epoch, sign, signing_key,
};

#[tokio::test]
async fn a_token_signed_with_another_key_is_invalid() {
    let server = Server::start().await;
    let mint = Mint::of(&server).await;
    let token = sign(
        &mint.header(),
        &mint.claims(),
        Algorithm::RS256,
        &other_key(),
    );
    expect_invalid(&server, &token, "another key").await;
}

#[tokio::test]
async fn a_changed_payload_is_invalid() {
    let server = Server::start().await;
    let mint = Mint::of(&server).await;
    let token = mint.token(&mint.claims_with("scope", json!(["credhub.read"])));
    let parts: Vec<&str> = token.split('.').collect();
    let forged = format!("{}.{}.{}", parts[0], encode(&mint.claims()), parts[2]);
    expect_invalid(&server, &forged, "a changed payload").await;
}

#[tokio::test]
async fn a_forged_token_that_is_expired_is_invalid_and_not_expired() {
    let server = Server::start().await;
    let mint = Mint::of(&server).await;
    let claims = mint.claims_with("exp", json!(seconds_since_epoch() - 3_600));
    let token = sign(&mint.header(), &claims, Algorithm::RS256, &other_key());
    expect_invalid(&server, &token, "another key, expired").await;
}

#[tokio::test]
async fn an_unsigned_token_is_invalid_with_any_algorithm() {
    let server = Server::start().await;
    let mint = Mint::of(&server).await;
    for algorithm in ["none", "None", "NONE", "", "RS256", "HS256"] {
        let mut header = mint.header();
        header["alg"] = json!(algorithm);
        let message = format!("{}.{}", encode(&header), encode(&mint.claims()));
        for signature in ["", "AA"] {
            expect_invalid(&server, &format!("{message}.{signature}"), algorithm).await;
        }
    }
}

#[tokio::test]
async fn the_public_key_is_not_a_shared_secret() {
    let server = Server::start().await;
    let mint = Mint::of(&server).await;
    let key_path = key_file("token-signing-key.pem");
    let public_key = |form: &[&str]| {
        let mut arguments = vec!["pkey", "-pubout", "-in", key_path.to_str().unwrap()];
        arguments.extend(form);
        Program::run("openssl", &arguments, "").expect_success()
    };
    let pem = public_key(&[]);
    let keys = server
        .send(server.request(Method::GET, "/identity/token_keys"))
        .await
        .json();
    let modulus = keys["keys"][0]["n"].as_str().unwrap().to_owned();
    for secret in [
        pem.as_bytes().to_vec(),
        pem.trim_end().as_bytes().to_vec(),
        modulus.as_bytes().to_vec(),
        URL_SAFE_NO_PAD.decode(&modulus).unwrap(),
    ] {
        let key = EncodingKey::from_secret(&secret);
        for (name, algorithm) in [("HS256", Algorithm::HS256), ("RS256", Algorithm::HS256)] {
            let mut header = mint.header();
            header["alg"] = json!(name);
            let token = sign(&header, &mint.claims(), algorithm, &key);
            expect_invalid(&server, &token, name).await;
        }
    }
}

#[tokio::test]
async fn the_right_key_with_another_algorithm_is_invalid() {
    let server = Server::start().await;
    let mint = Mint::of(&server).await;
    for (name, algorithm) in [
        ("RS384", Algorithm::RS384),
        ("RS512", Algorithm::RS512),
        ("PS256", Algorithm::PS256),
        ("RS256", Algorithm::RS512),
        ("rs256", Algorithm::RS256),
    ] {
        let mut header = mint.header();
        header["alg"] = json!(name);
        let token = sign(&header, &mint.claims(), algorithm, &signing_key());
        expect_invalid(&server, &token, name).await;
    }
}

#[tokio::test]
async fn a_key_in_the_header_is_not_trusted() {
    let server = Server::start().await;
    let mint = Mint::of(&server).await;
    let base_url = server.base_url();
    let other_modulus = "sXchDaQebHnPiGvyDOAT4saGEUetSyo9MKLOoWFsueri23bOdgWp4Dy1WlUzewbgBHod5pcM9H95GQRV3JDXboIRROSBigeC5yjU1hGzHHyXss8UDprecbAYxknTcQkhslANGRUZmdTOQ5qTRsLAt6BTYuyvVRdhS8exSZEy_c4gs_7svlJJQ4H9_NxsiIoLwAEk7-Q3UXERGYw_75IDrGA84-lA_-Ct4eTlXHBIY2EaV7t7LjJaynVJCpkv4LKjTTAumiGUIuQhrNhZLuF_RJLqHpM2kgWFLU7-VTdL1VbC2tejvcI2BlMkEpk1BzBZI0KQB0GaDWFLN-aEAw3vRw";
    for member in [
        json!({"jwk": {"kty": "RSA", "n": other_modulus, "e": "AQAB", "alg": "RS256"}}),
        json!({"jku": format!("{base_url}/identity/token_keys")}),
        json!({"x5u": format!("{base_url}/identity/token_keys")}),
        json!({"x5c": ["MIIB"]}),
        json!({"crit": ["exp"]}),
    ] {
        for has_key_id in [true, false] {
            let mut header = mint.header();
            if !has_key_id {
                header.as_object_mut().unwrap().remove("kid");
            }
            header
                .as_object_mut()
                .unwrap()
                .extend(member.as_object().unwrap().clone());
            let token = sign(&header, &mint.claims(), Algorithm::RS256, &other_key());
            expect_invalid(&server, &token, &header.to_string()).await;
        }
    }
}

#[tokio::test]
async fn a_key_id_makes_no_other_key_trusted() {
    let server = Server::start().await;
    let mint = Mint::of(&server).await;
    for key_id in [
        json!(""),
        json!("unknown"),
        json!("../../../dev/null"),
        json!("../../etc/passwd"),
        json!("file:///etc/passwd"),
        json!("%2e%2e%2f"),
        json!("1; drop table credential"),
        json!({"kid": "a"}),
        json!(true),
        json!("/dev/null"),
        json!("' or 1=1 --"),
        json!("x".repeat(2_000)),
        json!("a\nb\u{0}c"),
        json!(0),
        json!(["a"]),
        Value::Null,
    ] {
        let mut header = mint.header();
        header["kid"] = key_id.clone();
        let token = sign(&header, &mint.claims(), Algorithm::RS256, &other_key());
        expect_invalid(&server, &token, &key_id.to_string()).await;
    }
}

async fn expect_invalid(server: &Server, token: &str, forgery: &str) {
    expect_refused(server, token, "invalid_token", forgery).await;
}
