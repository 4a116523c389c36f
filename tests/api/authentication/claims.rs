//! The `Authorization` header, and the required claims of a token.

use keywright_harness::{
    Server, Text,
    mint::{Mint, expect_refused, present},
};
use reqwest::{Method, header};
use serde_json::{Value, json};

use crate::given;

#[tokio::test]
async fn a_request_without_credentials_is_denied() {
    let server = Server::reused().await;
    let response = server.send(server.request(Method::GET, "/version")).await;
    let response = response.expect(401);
    assert_eq!(response.error(), "access_denied");
    let fields = given::fields(&response.json()).join(" ");
    assert_eq!(fields, "error error_description");
    let challenge = response.header("www-authenticate").unwrap();
    assert!(challenge.starts_with("Bearer"), "{challenge}");
    challenge.assert_lacks("error=");
}

#[tokio::test]
async fn another_scheme_does_not_authenticate() {
    let server = Server::reused().await;
    for header in [
        "Basic ZGV2ZWxvcGVyOmRldmVsb3Blci1zZWNyZXQ=",
        "Digest x",
        server.token(),
    ] {
        let request = server
            .request(Method::GET, "/version")
            .header(header::AUTHORIZATION, header);
        let response = server.send(request).await;
        assert_eq!(response.expect(401).error(), "access_denied");
    }
}

#[tokio::test]
async fn a_token_in_the_query_does_not_authenticate() {
    let server = Server::reused().await;
    let path = format!("/version?access_token={}", server.token());
    let response = server
        .send(server.request(Method::GET, &path))
        .await
        .expect(401);
    assert_eq!(response.error(), "access_denied");
}

#[tokio::test]
async fn the_scheme_is_accepted_in_any_casing() {
    let server = Server::reused().await;
    for scheme in ["Bearer", "bearer", "BEARER"] {
        let request = server.request(Method::GET, "/version").header(
            header::AUTHORIZATION,
            format!("{scheme} {}", server.token()),
        );
        server.send(request).await.expect(200);
    }
}

// The required claims of a token.

#[tokio::test]
async fn a_token_whose_claims_are_wrong_is_invalid() {
    let server = Server::reused().await;
    let mint = Mint::of(&server).await;
    let issuer = mint.claims()["iss"].as_str().unwrap().to_owned();
    for (claim, value) in [
        ("exp", Value::Null),
        ("iss", Value::Null),
        ("iss", json!("")),
        ("iss", json!("https://other.example/identity")),
        ("iss", json!(format!("{issuer}/"))),
        ("iss", json!(issuer.to_uppercase())),
        ("iss", json!([issuer])),
        ("iss", json!(1)),
        ("scope", json!("credhub.read credhub.write")),
        (
            "scope",
            json!({"credhub.read": true, "credhub.write": true}),
        ),
        ("scope", json!([1, 2])),
    ] {
        let token = mint.token(&mint.claims_with(claim, value.clone()));
        let attack = format!("{claim} {value}");
        expect_refused(&server, &token, "invalid_token", &attack).await;
    }
}

#[tokio::test]
async fn both_scopes_are_required() {
    let server = Server::reused().await;
    let mint = Mint::of(&server).await;
    for scope in [
        Value::Null,
        json!([]),
        json!(["credhub.read"]),
        json!(["credhub.write"]),
        json!(["credhub.read", "credhub.writer"]),
        json!(["CREDHUB.READ", "CREDHUB.WRITE"]),
        json!(["credhub.read credhub.write"]),
    ] {
        let token = mint.token(&mint.claims_with("scope", scope.clone()));
        expect_refused(&server, &token, "insufficient_scope", &scope.to_string()).await;
    }
}

#[tokio::test]
async fn scopes_may_be_in_any_order_among_others() {
    let server = Server::reused().await;
    let mint = Mint::of(&server).await;
    let scope = json!(["openid", "credhub.write", "x", "credhub.read"]);
    let response = present(&server, &mint.token(&mint.claims_with("scope", scope))).await;
    response.expect(200);
}

#[tokio::test]
async fn missing_scopes_are_reported_before_an_unknown_path() {
    let server = Server::reused().await;
    let mint = Mint::of(&server).await;
    let token = mint.token(&mint.claims_with("scope", json!(["credhub.read"])));
    for path in ["/no/such/path", "/api/v1/data", "/api/v1/regenerate"] {
        let request = server.request(Method::GET, path).bearer_auth(&token);
        server.send(request).await.expect(403);
    }
}

#[tokio::test]
async fn the_audience_is_not_checked_by_default() {
    let server = Server::reused().await;
    let mint = Mint::of(&server).await;
    for audience in [Value::Null, json!("someone"), json!(["a", "b"]), json!([])] {
        let token = mint.token(&mint.claims_with("aud", audience.clone()));
        assert_eq!(present(&server, &token).await.status, 200, "{audience}");
    }
}
