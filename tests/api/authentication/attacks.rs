//! Tokens without a signature by a trusted key, and signed tokens with invalid contents or encoding.

use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE, URL_SAFE_NO_PAD},
};
use jsonwebtoken::{Algorithm, EncodingKey};
use keywright_harness::{
    Commanded, Options, Server, key_file,
    mint::{
        Mint, encode, expect_refused, other_key, present, seconds_since_epoch, sign, sign_texts,
        signing_key,
    },
};
use reqwest::{ClientBuilder, Method, Response};
use serde_json::{Value, json};

use crate::given;

#[tokio::test]
async fn a_token_with_a_wrong_signature_is_invalid_even_if_expired() {
    let server = Server::reused().await;
    let mint = Mint::of(&server).await;
    let by_another_key =
        |claims: &Value| sign(&mint.header(), claims, Algorithm::RS256, &other_key());
    expect_invalid(&server, &by_another_key(&mint.claims()), "another key").await;
    let expired = mint.claims_with("exp", json!(seconds_since_epoch() - 3_600));
    expect_invalid(&server, &by_another_key(&expired), "another key, expired").await;
    let token = mint.token(&mint.claims_with("scope", json!(["credhub.read"])));
    let parts: Vec<&str> = token.split('.').collect();
    let forged = format!("{}.{}.{}", parts[0], encode(&mint.claims()), parts[2]);
    expect_invalid(&server, &forged, "a changed payload").await;
}

#[tokio::test]
async fn an_unsigned_token_is_invalid_with_any_algorithm() {
    let server = Server::reused().await;
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
async fn a_token_of_the_trusted_key_with_another_algorithm_is_invalid() {
    let server = Server::reused().await;
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
async fn a_key_id_does_not_make_another_key_trusted() {
    let server = Server::reused().await;
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

// Tokens signed by the trusted key, but with invalid contents or encoding.

/// Exceeds the permitted clock skew of 60 seconds by more than a test takes. Tests with a fixed clock check the exact limit
/// (`host/api/tests/service/tokens.rs`).
const BEYOND_SKEW_SECONDS: i64 = 120;

#[tokio::test]
async fn invalid_past_and_future_times_are_refused() {
    let server = Server::reused().await;
    let mint = Mint::of(&server).await;
    let now = seconds_since_epoch();
    let (invalid, expired) = ("invalid_token", "access_token_expired");
    for (claim, json, code) in [
        ("exp", (now - 61).to_string(), expired),
        ("exp", "0".to_owned(), expired),
        ("exp", "-1".to_owned(), expired),
        ("exp", i64::MIN.to_string(), expired),
        ("exp", format!("\"{}\"", now + 600), invalid),
        ("exp", format!("{}.5", now + 600), invalid),
        ("exp", format!("{}.0", now + 600), invalid),
        ("exp", "1e300".to_owned(), invalid),
        ("exp", "4e9".to_owned(), invalid),
        ("exp", "253402300800".to_owned(), invalid),
        ("exp", i64::MAX.to_string(), invalid),
        ("exp", u64::MAX.to_string(), invalid),
        ("exp", format!("1{}", "0".repeat(400)), invalid),
        ("exp", "null".to_owned(), invalid),
        ("exp", "true".to_owned(), invalid),
        ("exp", format!("[{}]", now + 600), invalid),
        ("nbf", (now + BEYOND_SKEW_SECONDS).to_string(), invalid),
        ("nbf", i64::MAX.to_string(), invalid),
        ("nbf", "1.5".to_owned(), invalid),
        ("nbf", "null".to_owned(), invalid),
        ("nbf", "\"0\"".to_owned(), invalid),
        ("nbf", "{}".to_owned(), invalid),
    ] {
        let claims = with_text(&mint.claims_with(claim, Value::Null), claim, &json);
        let token = signed(&mint, &claims);
        expect_refused(&server, &token, code, &format!("{claim} {json}")).await;
    }
    // An expired token is reported before missing scopes.
    let mut unscoped = mint.claims_with("scope", Value::Null);
    unscoped["exp"] = json!(now - 61);
    let unscoped = mint.token(&unscoped);
    expect_refused(&server, &unscoped, expired, "without scopes").await;
    let latest = with_text(&mint.claims_with("exp", Value::Null), "exp", "253402300799");
    present(&server, &signed(&mint, &latest)).await.expect(200);
}

#[tokio::test]
async fn a_duplicate_claim_is_refused_in_either_order() {
    let server = Server::reused().await;
    let mint = Mint::of(&server).await;
    let claims = mint.claims();
    let now = seconds_since_epoch();
    for (claim, other) in [
        ("iss", json!("https://other.example")),
        ("iss", claims["iss"].clone()),
        ("exp", json!(now - 3_600)),
        ("exp", json!(now + 3_600)),
        ("scope", json!([])),
        ("scope", json!(["credhub.read", "credhub.write"])),
        ("client_id", json!("other")),
        ("grant_type", json!("password")),
        ("nbf", json!(0)),
        ("sub", json!("other")),
        ("unused", json!(1)),
    ] {
        let good = claims.get(claim).cloned().unwrap_or(json!(0));
        let rest = mint.claims_with(claim, Value::Null);
        for (first, second) in [(&good, &other), (&other, &good)] {
            let once = with_text(&rest, claim, &first.to_string());
            let twice = format!("{},\"{claim}\":{second}}}", &once[..once.len() - 1]);
            expect_refused(&server, &signed(&mint, &twice), "invalid_token", &twice).await;
        }
    }
    let escaped = with_text(&claims, "i\\u0073s", "\"https://other.example\"");
    expect_refused(&server, &signed(&mint, &escaped), "invalid_token", &escaped).await;
    let inside = with_text(&claims, "a", r#"{"b":1,"b":2}"#);
    expect_refused(&server, &signed(&mint, &inside), "invalid_token", &inside).await;
}

#[tokio::test]
async fn duplicate_and_critical_header_fields_are_refused() {
    let server = Server::reused().await;
    let mint = Mint::of(&server).await;
    let key_id = mint.header()["kid"].as_str().unwrap().to_owned();
    for header in [
        r#"{"alg":"RS256","alg":"RS256"}"#.to_owned(),
        r#"{"alg":"none","alg":"RS256"}"#.to_owned(),
        r#"{"alg":"RS256","alg":"none"}"#.to_owned(),
        r#"{"alg":"RS256","\u0061lg":"none"}"#.to_owned(),
        format!(r#"{{"alg":"RS256","kid":"{key_id}","kid":"other"}}"#),
        format!(r#"{{"alg":"RS256","kid":"other","kid":"{key_id}"}}"#),
        r#"{"alg":"RS256","crit":[]}"#.to_owned(),
        r#"{"alg":"RS256","crit":["b64"],"b64":false}"#.to_owned(),
        r#"{"alg":"RS256","cty":"JWT"}"#.to_owned(),
        r#"{"alg":"RS256","cty":"jwt"}"#.to_owned(),
        r#"{"alg":"RS256","typ":"dpop+jwt"}"#.to_owned(),
        r#"{"alg":"RS256","typ":"logout+jwt"}"#.to_owned(),
        r#"{"alg":"RS256","typ":"JWE"}"#.to_owned(),
        r#"{"alg":"RS256","typ":["JWT"]}"#.to_owned(),
        r#"{"alg":"RS256","typ":null}"#.to_owned(),
        r#"{"alg":["RS256"]}"#.to_owned(),
        r#"{"alg":null}"#.to_owned(),
        r#"{"kid":"a"}"#.to_owned(),
        r#"["RS256"]"#.to_owned(),
        "RS256".to_owned(),
        String::new(),
    ] {
        let token = signed_with(&header, &mint.claims().to_string());
        expect_refused(&server, &token, "invalid_token", &header).await;
    }
    for header in [
        json!({"alg": "RS256"}),
        json!({"alg": "RS256", "typ": "jwt"}),
        json!({"alg": "RS256", "typ": "at+jwt"}),
        json!({"alg": "RS256", "typ": "application/at+jwt", "jku": "https://other.example"}),
    ] {
        let token = signed_with(&header.to_string(), &mint.claims().to_string());
        present(&server, &token).await.expect(200);
    }
}

#[tokio::test]
async fn a_token_within_a_token_is_refused() {
    let server = Server::reused().await;
    let mint = Mint::of(&server).await;
    for header in [
        mint.header().to_string(),
        r#"{"alg":"RS256","cty":"JWT"}"#.to_owned(),
    ] {
        for payload in [
            server.token().to_owned(),
            json!(server.token()).to_string(),
            json!([server.token()]).to_string(),
        ] {
            let nested = signed_with(&header, &payload);
            expect_refused(&server, &nested, "invalid_token", &header).await;
        }
    }
}

#[tokio::test]
async fn a_token_in_another_encoding_is_refused() {
    let server = Server::reused().await;
    let token = server.token();
    let parts: Vec<&str> = token.split('.').collect();
    let [header, payload, signature] = parts.as_slice() else {
        panic!("{token}");
    };
    let padded = |part: &str| URL_SAFE.encode(URL_SAFE_NO_PAD.decode(part).unwrap());
    let with_plus = STANDARD.encode(URL_SAFE_NO_PAD.decode(signature).unwrap());
    for (attack, forged) in [
        ("two parts", format!("{header}.{payload}")),
        ("one part", (*header).to_owned()),
        ("four parts", format!("{token}.{signature}")),
        ("an additional first part", format!("{header}.{token}")),
        ("a trailing dot", format!("{token}.")),
        ("three trailing dots", format!("{token}...")),
        ("a leading dot", format!(".{token}")),
        ("only dots", "..".to_owned()),
        ("no header", format!(".{payload}.{signature}")),
        ("no payload", format!("{header}..{signature}")),
        ("no signature", format!("{header}.{payload}.")),
        ("padded header", format!("{header}=.{payload}.{signature}")),
        (
            "padded signature",
            format!("{header}.{payload}.{}", padded(signature)),
        ),
        ("other alphabet", format!("{header}.{payload}.{with_plus}")),
        ("a blank inside", format!("{header}. {payload}.{signature}")),
        ("a tab inside", format!("{header}.{payload}.\t{signature}")),
        (
            "not encoded",
            format!(r#"{{"alg":"RS256"}}.{{"iss":"a"}}.{signature}"#),
        ),
        ("percent-encoded", token.replace('.', "%2E")),
        ("quoted", format!("\"{token}\"")),
        ("two tokens", format!("{token},{token}")),
        ("unused bits that are set", with_spare_bits(token)),
    ] {
        expect_refused(&server, &forged, "invalid_token", attack).await;
    }
    present(&server, token).await.expect(200);
}

#[tokio::test]
async fn a_token_has_at_most_16_kibibytes() {
    let server = Server::reused().await;
    let mint = Mint::of(&server).await;
    let sized = |characters: usize| {
        let token = mint.token(&mint.claims_with("padding", json!("x".repeat(characters))));
        (token.len(), token)
    };
    let (shortest, _) = sized(0);
    // Base64 encodes three bytes as four characters, so the length may exceed the intended one by up to three.
    let fitting = (16 * 1_024 - shortest) * 3 / 4;
    let tokens: Vec<_> = (fitting - 8..fitting + 8).map(sized).collect();
    let (_, largest) = tokens
        .iter()
        .rfind(|(length, _)| *length <= 16_384)
        .unwrap();
    let (_, too_large) = tokens.iter().find(|(length, _)| *length > 16_384).unwrap();
    let (_, huge) = sized(40_000);
    for (token, status) in [(largest, 200), (too_large, 401), (&huge, 401)] {
        let response = present_over_http_1(&server, token).await;
        assert_eq!(response.status().as_u16(), status, "{}", token.len());
        if status == 401 {
            let body: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
            assert_eq!(body["error"], "invalid_token");
        }
    }
}

#[tokio::test]
async fn a_token_with_the_public_key_as_hmac_secret_is_invalid() {
    let server = Server::reused().await;
    let mint = Mint::of(&server).await;
    let keys = server
        .send(server.request(Method::GET, "/identity/token_keys"))
        .await
        .json();
    let modulus = keys["keys"][0]["n"].as_str().unwrap().to_owned();
    let mut secrets = vec![
        modulus.as_bytes().to_vec(),
        URL_SAFE_NO_PAD.decode(&modulus).unwrap(),
    ];
    let key = key_file("token-signing-key.pem");
    for form in ["-pubout", "-RSAPublicKey_out"] {
        let arguments = ["rsa", "-in", key.to_str().unwrap(), form];
        let pem = Commanded::run("openssl", &arguments, "").expect(0).output;
        let base64: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
        secrets.push(STANDARD.decode(base64).unwrap());
        secrets.push(pem.trim_end().as_bytes().to_vec());
        secrets.push(pem.into_bytes());
    }
    for secret in secrets {
        let key = EncodingKey::from_secret(&secret);
        for (name, algorithm) in [
            ("HS256", Algorithm::HS256),
            ("HS512", Algorithm::HS512),
            ("RS256", Algorithm::HS256),
            ("ES256", Algorithm::HS256),
        ] {
            let mut header = mint.header();
            header["alg"] = json!(name);
            let token = sign(&header, &mint.claims(), algorithm, &key);
            expect_invalid(&server, &token, name).await;
        }
    }
}

#[tokio::test]
async fn a_name_in_a_token_has_at_most_255_characters() {
    let server = Server::reused().await;
    let mint = Mint::of(&server).await;
    for (claim, form) in [
        ("sub", json!(1)),
        ("sub", json!("é".repeat(256))),
        ("client_id", json!("x".repeat(256))),
        ("client_id", json!(["developer"])),
        ("client_id", json!({"id": "developer"})),
    ] {
        let token = mint.token(&mint.claims_with(claim, form));
        expect_refused(&server, &token, "invalid_token", claim).await;
    }
    let longest = mint.claims_with("sub", json!("é".repeat(255)));
    present(&server, &mint.token(&longest)).await.expect(200);
}

#[tokio::test]
async fn a_configured_audience_is_checked() {
    let options = Options::default().authentication_settings(r#"audience = "keywright""#);
    let server = Server::start_with(&options).await;
    let mint = Mint::of(&server).await;
    for audience in [
        Value::Null,
        json!(""),
        json!("other"),
        json!("Keywright"),
        json!("keywright "),
        json!("keywright other"),
        json!([]),
        json!(["other"]),
        json!(["keywright", 1]),
        json!([["keywright"]]),
        json!({"keywright": true}),
        json!(1),
    ] {
        let token = mint.token(&mint.claims_with("aud", audience.clone()));
        expect_refused(&server, &token, "invalid_token", &audience.to_string()).await;
    }
    for audience in [json!("keywright"), json!(["other", "keywright"])] {
        let token = mint.token(&mint.claims_with("aud", audience));
        present(&server, &token).await.expect(200);
    }
    let mut claims = mint.claims_with("aud", json!("other"));
    claims["exp"] = json!(seconds_since_epoch() - 3_600);
    expect_refused(
        &server,
        &mint.token(&claims),
        "invalid_token",
        "also expired",
    )
    .await;
}

/// Sends a token over HTTP/1.1, as it may exceed the header limit of HTTP/2.
async fn present_over_http_1(server: &Server, token: &str) -> Response {
    let client = given::client(ClientBuilder::http1_only);
    let url = format!("{}/version", server.base_url());
    client.get(url).bearer_auth(token).send().await.unwrap()
}

/// Appends a claim as raw text, which may be unusual or invalid JSON.
fn with_text(claims: &Value, claim: &str, json: &str) -> String {
    let claims = claims.to_string();
    format!("{},\"{claim}\":{json}}}", &claims[..claims.len() - 1])
}

fn signed(mint: &Mint, claims: &str) -> String {
    signed_with(&mint.header().to_string(), claims)
}

fn signed_with(header: &str, claims: &str) -> String {
    sign_texts(header, claims, Algorithm::RS256, &signing_key())
}

/// Returns the token with the unused bits of its last character set to one.
fn with_spare_bits(token: &str) -> String {
    const ALPHABET: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let (rest, last) = token.split_at(token.len() - 1);
    let index = ALPHABET.find(last).unwrap();
    format!("{rest}{}", &ALPHABET[index + 1..index + 2])
}
