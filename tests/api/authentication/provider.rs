//! Remote identity providers: discovery, and the address, the types and the rotation of their keys.

use std::fs;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use jsonwebtoken::Algorithm;
use keywright_harness::{
    Options, Reply, Server, Stub,
    mint::{expect_refused, present, seconds_since_epoch, sign},
    until,
};
use reqwest::Method;
use serde_json::{Value, json};

use super::{Signer, StubProvider};
use crate::external_certificates;

// A server that trusts a remote identity provider over HTTPS.

#[tokio::test]
async fn with_an_unreachable_provider_only_token_requests_fail() {
    let unreachable = Options::default().identity_provider("https://127.0.0.1:1/identity");
    let server = Server::start_with(&unreachable).await;
    let another = Server::start().await;
    for _ in 0..2 {
        let response = present(&server, another.token()).await.expect(503);
        assert!(!response.error().is_empty());
        let seconds: u32 = response.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=60).contains(&seconds), "{seconds}");
    }
    let response = present(&server, "x").await;
    assert_eq!(response.expect(401).error(), "invalid_token");
    let without_a_token = server.request(Method::GET, "/version");
    let response = server.send(without_a_token).await;
    assert_eq!(response.expect(401).error(), "access_denied");
    for path in ["/info", "/health"] {
        let response = server.send(server.request(Method::GET, path)).await;
        response.expect(200);
    }
}

#[tokio::test]
async fn requests_are_503_if_the_provider_is_not_trusted() {
    let provider = Server::start().await;
    let other_authority = provider.directory().join("other-ca.pem");
    fs::write(
        &other_authority,
        external_certificates::authority("another").certificate,
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

// Any OIDC provider: the address, the types and the rotation of its keys.

#[tokio::test]
async fn without_jwks_uri_keys_are_fetched_from_token_keys() {
    let key = Signer::rsa("a");
    let provider = StubProvider::start("/uaa", &[]);
    provider.publish_discovery(&json!({"issuer": "https://uaa.example/oauth/token"}));
    provider.publish("/token_keys", &json!({"keys": [key.published]}));
    let server = Server::start_with(&provider.options()).await;
    let mut claims = provider.claims();
    expect_refused(&server, &key.token(&claims), "invalid_token", "iss").await;
    claims["iss"] = json!("https://uaa.example/oauth/token");
    present(&server, &key.token(&claims)).await.expect(200);
}

#[tokio::test]
async fn keys_below_the_public_url_are_fetched_from_the_internal_url() {
    let key = Signer::rsa("a");
    let provider = StubProvider::start("/uaa", &[&key]);
    let public = "https://login.invalid/uaa";
    provider.publish_discovery(
        &json!({"issuer": "https://login.invalid", "jwks_uri": format!("{public}/keys")}),
    );
    let internal = format!("internal_url = \"{}\"", provider.url());
    let options = provider
        .options()
        .identity_provider(public)
        .authentication_settings(&internal);
    let server = Server::start_with(&options).await;
    let mut claims = provider.claims();
    claims["iss"] = json!("https://login.invalid");
    present(&server, &key.token(&claims)).await.expect(200);
    let information = server.get_json("/info").await;
    assert_eq!(information["auth-server"]["url"], public);
}

#[tokio::test]
async fn a_key_is_used_only_with_its_own_algorithm() {
    let (rsa, p256, p384) = (Signer::rsa("r"), Signer::p256("e"), Signer::p384("l"));
    let provider = StubProvider::start("", &[&rsa, &p256, &p384]);
    let server = Server::start_with(&provider.options()).await;
    let claims = provider.claims();
    for signer in [&rsa, &p256] {
        present(&server, &signer.token(&claims)).await.expect(200);
        let without_key_id = json!({"alg": signer.header()["alg"]});
        let token = signer.token_with(&without_key_id, &claims);
        present(&server, &token).await.expect(200);
    }
    let (message, _) = p256.token(&claims).rsplit_once('.').map(owned).unwrap();
    let with_signature = |bytes: &[u8]| format!("{message}.{}", URL_SAFE_NO_PAD.encode(bytes));
    let named = |signer: &Signer, algorithm: &str, key_id: &str| {
        signer.token_with(&json!({"alg": algorithm, "kid": key_id}), &claims)
    };
    let sign_with = |algorithm: Algorithm| {
        let name = format!("{algorithm:?}");
        sign(
            &json!({"alg": name, "kid": "r"}),
            &claims,
            algorithm,
            &rsa.key,
        )
    };
    for (attack, token) in [
        ("ES256 by a P-384 key", named(&p384, "ES256", "l")),
        (
            "ES256 by a P-384 key with another key's id",
            named(&p384, "ES256", "e"),
        ),
        ("ES384 by a published P-384 key", named(&p384, "ES384", "l")),
        (
            "RS256 in the header, a P-256 key",
            named(&p256, "RS256", "e"),
        ),
        (
            "RS256 in the header, a P-256 key with another key's id",
            named(&p256, "RS256", "r"),
        ),
        ("ES256 in the header, an RSA key", named(&rsa, "ES256", "r")),
        (
            "ES256 in the header, an RSA key with another key's id",
            named(&rsa, "ES256", "e"),
        ),
        ("es256", named(&p256, "es256", "e")),
        ("ES256K", named(&p256, "ES256K", "e")),
        ("EdDSA", named(&p256, "EdDSA", "e")),
        ("RS384", sign_with(Algorithm::RS384)),
        ("RS512", sign_with(Algorithm::RS512)),
        ("PS256", sign_with(Algorithm::PS256)),
        ("zeros", with_signature(&[0; 64])),
        ("zeros of another length", with_signature(&[0; 96])),
        (
            "ones",
            with_signature(&[[0; 31].as_slice(), &[1], &[0; 31], &[1]].concat()),
        ),
        ("no signature", with_signature(&[])),
        ("zeros in DER", with_signature(&[0x30, 6, 2, 1, 0, 2, 1, 0])),
        ("another P-256 key", Signer::p256("e").token(&claims)),
    ] {
        expect_refused(&server, &token, "invalid_token", attack).await;
    }
}

#[tokio::test]
async fn a_key_address_in_a_token_is_never_fetched() {
    let (key, other) = (Signer::rsa("a"), Signer::other_rsa("a"));
    let provider = StubProvider::start("", &[&key]);
    provider.publish("/forged", &json!({"keys": [other.published]}));
    let server = Server::start_with(&provider.options()).await;
    let forged = format!("{}/forged", provider.url());
    for header in [
        json!({"alg": "RS256", "kid": "a"}),
        json!({"alg": "RS256", "kid": "unknown"}),
        json!({"alg": "RS256"}),
    ] {
        for field in [
            json!({"jku": forged}),
            json!({"x5u": forged}),
            json!({"jwk": other.published}),
            json!({"x5c": ["MIIB"]}),
        ] {
            let mut header = header.clone();
            let fields = header.as_object_mut().unwrap();
            fields.extend(field.as_object().unwrap().clone());
            let token = other.token_with(&header, &provider.claims());
            expect_refused(&server, &token, "invalid_token", &header.to_string()).await;
        }
    }
    assert_eq!(provider.requests("/forged"), 0);
    let response = present(&server, &key.token(&provider.claims())).await;
    response.expect(200);
}

#[tokio::test]
async fn an_unknown_key_id_refreshes_keys_and_drops_withdrawn_ones() {
    let (old, new) = (Signer::rsa("old"), Signer::p256("new"));
    let provider = StubProvider::start("", &[&old]);
    let server = Server::start_with(&provider.options()).await;
    let claims = provider.claims();
    present(&server, &old.token(&claims)).await.expect(200);
    expect_refused(&server, &new.token(&claims), "invalid_token", "not yet").await;
    provider.publish_keys(&[&old, &new]);
    present(&server, &new.token(&claims)).await.expect(200);
    present(&server, &old.token(&claims)).await.expect(200);
    let newest = Signer::other_rsa("newest");
    provider.publish_keys(&[&newest]);
    present(&server, &newest.token(&claims)).await.expect(200);
    for (withdrawn, name) in [(&old, "old"), (&new, "new")] {
        expect_refused(&server, &withdrawn.token(&claims), "invalid_token", name).await;
    }
    // The refreshed keys differ from the cached keys, but none of them has signed the token.
    provider.publish_keys(&[&old, &newest]);
    let forged = Signer::p256("forged");
    expect_refused(&server, &forged.token(&claims), "invalid_token", "forged").await;
    present(&server, &old.token(&claims)).await.expect(200);
}

#[tokio::test]
async fn a_changed_issuer_replaces_the_previous_issuer() {
    let (key, unknown) = (Signer::rsa("a"), Signer::p256("unknown"));
    let provider = StubProvider::start("", &[&key]);
    let server = Server::start_with(&provider.options()).await;
    let claims = provider.claims();
    let mut renamed = claims.clone();
    renamed["iss"] = json!("https://renamed.example");
    present(&server, &key.token(&claims)).await.expect(200);
    expect_refused(&server, &key.token(&renamed), "invalid_token", "not yet").await;
    let keys_url = format!("{}/keys", provider.url());
    provider.publish_discovery(&json!({"issuer": renamed["iss"], "jwks_uri": keys_url}));
    // The unknown key id refreshes the issuer, too.
    expect_refused(&server, &unknown.token(&claims), "invalid_token", "unknown").await;
    expect_refused(&server, &key.token(&claims), "invalid_token", "previous").await;
    present(&server, &key.token(&renamed)).await.expect(200);
}

#[tokio::test]
async fn keys_without_ids_are_refetched_when_no_key_verifies_a_token() {
    let (mut old, mut new) = (Signer::p256("old"), Signer::p256("new"));
    for signer in [&mut old, &mut new] {
        signer.published.as_object_mut().unwrap().remove("kid");
    }
    let provider = StubProvider::start("", &[&old]);
    let server = Server::start_with(&provider.options()).await;
    let claims = provider.claims();
    let token = |signer: &Signer| signer.token_with(&json!({"alg": "ES256"}), &claims);
    present(&server, &token(&old)).await.expect(200);
    provider.publish_keys(&[&new]);
    present(&server, &token(&new)).await.expect(200);
    expect_refused(&server, &token(&old), "invalid_token", "withdrawn").await;
}

#[tokio::test]
async fn a_withdrawn_key_is_refused_once_cached_keys_expire() {
    let (old, new) = (Signer::rsa("old"), Signer::other_rsa("new"));
    let provider = StubProvider::start("", &[&old]);
    let options = provider
        .options()
        .authentication_settings("keys_age_seconds_max = 1");
    let server = Server::start_with(&options).await;
    let token = old.token(&provider.claims());
    present(&server, &token).await.expect(200);
    provider.publish_keys(&[&new]);
    // No request causes the server to fetch the new keys. The second fetch starts after the first.
    let fetched = provider.requests("/keys");
    let is_fetched = async || provider.requests("/keys") > fetched + 1;
    until("fetches of the new key", is_fetched).await;
    expect_refused(&server, &token, "invalid_token", "withdrawn").await;
}

#[tokio::test]
async fn a_key_set_without_a_usable_key_withdraws_all_keys() {
    let key = Signer::rsa("a");
    let provider = StubProvider::start("", &[&key]);
    let server = Server::start_with(&provider.options()).await;
    let claims = provider.claims();
    let unknown = Signer::other_rsa("b").token(&claims);
    for keys in [json!([]), json!([{"kty": "oct", "k": "AAAA", "kid": "b"}])] {
        provider.publish_keys(&[&key]);
        let is_accepted = async || present(&server, &key.token(&claims)).await.status == 200;
        until("fetch of the key", is_accepted).await;
        provider.publish("/keys", &json!({"keys": keys}));
        present(&server, &unknown).await.expect(503);
        present(&server, &key.token(&claims)).await.expect(503);
    }
}

#[tokio::test]
async fn fetches_for_unknown_keys_are_rate_limited() {
    let key = Signer::rsa("a");
    let provider = StubProvider::start("", &[&key]);
    let options = provider.options().environment(
        "KEYWRIGHT_AUTHENTICATION__KEYS_INTERVAL_SECONDS_MIN",
        "3600",
    );
    let server = Server::start_with(&options).await;
    let response = present(&server, &key.token(&provider.claims())).await;
    response.expect(200);
    for number in 0..20 {
        let invented = Signer::other_rsa(&format!("invented-{number}"));
        let token = invented.token(&provider.claims());
        expect_refused(&server, &token, "invalid_token", "invented").await;
    }
    assert_eq!(provider.requests("/keys"), 1);
}

#[tokio::test]
async fn keys_are_fetched_at_start_before_the_first_token() {
    let key = Signer::rsa("a");
    let provider = StubProvider::start("", &[&key]);
    let server = Server::start_with(&provider.options()).await;
    until("request", async || provider.requests("/keys") > 0).await;
    // A token that arrives before the provider's response waits for it.
    let token = key.token(&provider.claims());
    present(&server, &token).await.expect(200);
    assert_eq!(provider.requests("/keys"), 1);
}

#[tokio::test]
async fn keys_are_fetched_once_the_provider_is_reachable_again() {
    let (key, new) = (Signer::rsa("a"), Signer::p256("b"));
    let provider = StubProvider::start("", &[&key]);
    provider.set_unreachable(true);
    let server = Server::start_with(&provider.options()).await;
    let claims = provider.claims();
    let unchecked = present(&server, &key.token(&claims)).await.expect(503);
    assert!(!unchecked.error().is_empty());

    provider.set_unreachable(false);
    // A token can share a fetch that began before.
    let is_accepted = async || present(&server, &key.token(&claims)).await.status == 200;
    until("fetch of the keys", is_accepted).await;

    provider.set_unreachable(true);
    present(&server, &key.token(&claims)).await.expect(200);
    let mut unseen = claims.clone();
    unseen["jti"] = json!("unseen");
    present(&server, &key.token(&unseen)).await.expect(200);
    expect_refused(&server, &new.token(&claims), "invalid_token", "unknown key").await;
    let mut expired = claims.clone();
    expired["exp"] = json!(seconds_since_epoch() - 61);
    let expired = key.token(&expired);
    expect_refused(&server, &expired, "access_token_expired", "expired").await;
    present(&server, &key.token(&claims)).await.expect(200);

    provider.publish_keys(&[&new]);
    provider.set_unreachable(false);
    present(&server, &new.token(&claims)).await.expect(200);
    expect_refused(&server, &key.token(&claims), "invalid_token", "withdrawn").await;
}

#[tokio::test]
async fn a_malformed_key_set_leaves_the_keys_unchanged() {
    let key = Signer::rsa("a");
    let provider = StubProvider::start("", &[&key]);
    let server = Server::start_with(&provider.options()).await;
    let claims = provider.claims();
    present(&server, &key.token(&claims)).await.expect(200);
    for (path, document) in [
        ("/keys", json!({"keys": "none"})),
        ("/keys", json!([])),
        (
            "/keys",
            json!({"keys": [], "padding": "x".repeat(1024 * 1024)}),
        ),
        ("/.well-known/openid-configuration", json!({"issuer": ""})),
        ("/.well-known/openid-configuration", json!({})),
        ("/.well-known/openid-configuration", Value::Null),
    ] {
        provider.publish(path, &document);
        let unknown = Signer::other_rsa("b").token(&claims);
        expect_refused(&server, &unknown, "invalid_token", path).await;
        present(&server, &key.token(&claims)).await.expect(200);
    }
}

#[tokio::test]
async fn a_redirect_is_logged_and_not_followed() {
    let key = Signer::rsa("a").published;
    let provider = Stub::start(move |_, _, url| {
        let documents = json!({"issuer": url, "jwks_uri": format!("{url}/keys"), "keys": [key]});
        Reply::new(302, &documents.to_string())
    });
    let server = Server::start_with(&Options::default().identity_provider(&provider.url())).await;
    server
        .until_logged("/.well-known/openid-configuration with status 302 Found")
        .await;
}

#[tokio::test]
async fn a_published_short_key_is_ignored_and_logged_once() {
    let key = Signer::rsa("good");
    let provider = StubProvider::start("", &[]);
    let mut short = key.published.clone();
    short["kid"] = json!("too\u{202e}short");
    short["n"] = json!(URL_SAFE_NO_PAD.encode([0xff; 255]));
    provider.publish("/keys", &json!({"keys": [short, key.published]}));
    let server = Server::start_with(&provider.options()).await;
    let claims = provider.claims();
    present(&server, &key.token(&claims)).await.expect(200);
    for unknown in ["short", "unknown", ""] {
        let token = Signer::rsa(unknown).token(&claims);
        expect_refused(&server, &token, "invalid_token", unknown).await;
    }
    assert!(provider.requests("/keys") > 3);
    let log = server.log();
    let warnings = log
        .lines()
        .filter(|line| line.contains("\"too short: must have 2048 to 8192 bits\""));
    assert_eq!(warnings.count(), 1, "{log}");
}

fn owned((first, second): (&str, &str)) -> (String, String) {
    (first.to_owned(), second.to_owned())
}
