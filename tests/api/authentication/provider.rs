//! A server that trusts a remote identity provider over HTTPS.

use std::fs;

use jsonwebtoken::Algorithm;
use keywright_harness::{Options, Server};
use reqwest::{Method, header};
use serde_json::json;

use super::mint::{Mint, other_key, present, sign, signing_key};
use crate::made_elsewhere;

#[tokio::test]
async fn a_token_of_the_trusted_provider_is_accepted() {
    let (provider, server) = provider_and_server().await;
    present(&server, provider.token()).await.expect(200);
    let body = json!({"name": "/a", "type": "value", "value": "v"});
    let request = server
        .request(Method::PUT, "/api/v1/data")
        .bearer_auth(provider.token())
        .header(header::CONTENT_TYPE, "application/json")
        .body(body.to_string());
    let version = server.send(request).await.expect(200).json();
    assert_eq!(version["value"], "v");
}

#[tokio::test]
async fn info_names_the_provider() {
    let (provider, server) = provider_and_server().await;
    let information = server.get("/info").await.expect(200).json();
    assert_eq!(
        information["auth-server"]["url"],
        format!("{}/identity", provider.base_url())
    );
}

#[tokio::test]
async fn an_untrusted_token_is_invalid_there_too() {
    let (provider, server) = provider_and_server().await;
    let stranger = Server::start().await;
    let mint = Mint::of(&provider).await;
    let forged = sign(
        &mint.header(),
        &mint.claims(),
        Algorithm::RS256,
        &other_key(),
    );
    for token in [stranger.token(), &forged, "x"] {
        assert_eq!(
            present(&server, token).await.expect(401).error(),
            "invalid_token"
        );
    }
    for (issuer, status) in [(mint.claims()["iss"].clone(), 200), (json!("x"), 401)] {
        let token = mint.token(&mint.claims_with("iss", issuer));
        present(&server, &token).await.expect(status);
    }
}

#[tokio::test]
async fn a_key_id_that_the_provider_does_not_publish_is_invalid() {
    let (provider, server) = provider_and_server().await;
    let mint = Mint::of(&provider).await;
    for (key_id, status) in [
        (json!("unknown"), 401),
        (json!(""), 401),
        (mint.header()["kid"].clone(), 200),
    ] {
        let mut header = mint.header();
        header["kid"] = key_id.clone();
        let token = sign(&header, &mint.claims(), Algorithm::RS256, &signing_key());
        assert_eq!(present(&server, &token).await.status, status, "{key_id}");
    }
    let mut header = mint.header();
    header
        .as_object_mut()
        .unwrap()
        .retain(|member, _| member != "kid");
    let token = sign(&header, &mint.claims(), Algorithm::RS256, &signing_key());
    present(&server, &token).await.expect(200);
}

#[tokio::test]
async fn tokens_stay_valid_when_the_provider_goes_away() {
    let (provider, server) = provider_and_server().await;
    let mint = Mint::of(&provider).await;
    let known = provider.token().to_owned();
    present(&server, &known).await.expect(200);
    provider.stop().await;
    present(&server, &known).await.expect(200);
    let unseen = mint.token(&mint.claims_with("jti", json!("unseen")));
    present(&server, &unseen).await.expect(200);
    let forged = sign(
        &mint.header(),
        &mint.claims(),
        Algorithm::RS256,
        &other_key(),
    );
    present(&server, &forged).await.expect(401);
}

#[tokio::test]
async fn with_an_unreachable_provider_only_token_requests_fail() {
    let nobody_listens = Options::default().identity_provider("https://127.0.0.1:1/identity");
    let server = Server::start_with(&nobody_listens).await;
    let another = Server::start().await;
    for _ in 0..2 {
        let answer = present(&server, another.token()).await.expect(503);
        assert!(!answer.error().is_empty());
        let seconds: u32 = answer.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=60).contains(&seconds), "{seconds}");
    }
    assert_eq!(
        present(&server, "x").await.expect(401).error(),
        "invalid_token"
    );
    let without_a_token = server.request(Method::GET, "/version");
    assert_eq!(
        server.send(without_a_token).await.expect(401).error(),
        "access_denied"
    );
    for path in ["/info", "/health"] {
        server
            .send(server.request(Method::GET, path))
            .await
            .expect(200);
    }
}

#[tokio::test]
async fn an_untrusted_provider_receives_no_request() {
    let provider = Server::start().await;
    let other_authority = provider.directory().join("other-ca.pem");
    fs::write(
        &other_authority,
        made_elsewhere::authority("another").certificate,
    )
    .unwrap();
    let url = format!("{}/identity", provider.base_url());
    let distrusting = Options::default().identity_provider(&url).environment(
        "KEYWRIGHT_AUTHENTICATION__TRUSTED_AUTHORITIES",
        other_authority.to_str().unwrap(),
    );
    let server = Server::start_with(&distrusting).await;
    present(&server, provider.token()).await.expect(503);
}

#[tokio::test]
async fn a_provider_without_tls_is_refused_at_start() {
    let log = Server::refusal(&Options::default().identity_provider("http://127.0.0.1:1/identity"));
    assert!(log.contains("https"), "{log}");
}

#[test]
fn key_fetch_intervals_out_of_range_are_refused_by_name() {
    for (setting, number, words) in [
        ("keys_age_seconds_max", 0, "not 0"),
        ("keys_age_seconds_max", 86_401, "not 86401"),
        ("keys_interval_seconds_min", 3_601, "not 3601"),
        ("keys_interval_seconds_min", -1, "must be"),
    ] {
        let line = format!("{setting} = {number}");
        let refusal = Server::refusal(&Options::default().authentication_settings(&line));
        assert!(refusal.contains(setting), "{refusal}");
        assert!(refusal.contains(words), "{refusal}");
    }
}

async fn provider_and_server() -> (Server, Server) {
    let provider = Server::start().await;
    let url = format!("{}/identity", provider.base_url());
    let server = Server::start_with(&Options::default().identity_provider(&url)).await;
    (provider, server)
}
