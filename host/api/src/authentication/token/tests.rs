use std::sync::LazyLock;

use chrono::TimeDelta;
use serde_json::json;

use super::*;
use crate::authentication::keys::test_key::TestKey;

static KEY: LazyLock<TestKey> = LazyLock::new(TestKey::generate);

fn trusted() -> TrustedKeys {
    TrustedKeys::of_one(KEY.verification_key(), "issuer")
}

fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000, 0).unwrap()
}

fn token(number: usize, change: (&str, Value)) -> String {
    let mut claims = json!({
        "iss": "issuer",
        "exp": now().timestamp() + 600,
        "grant_type": "client_credentials",
        "client_id": "a",
        "sub": format!("subject {number}"),
        "scope": ["credhub.read", "credhub.write"],
    });
    claims[change.0] = change.1;
    KEY.sign(&claims)
}

fn check(trusted: &TrustedKeys, token: &str) -> Result<Identity, TokenError> {
    let signed = SignedToken::parse(token)?;
    let is_signed = trusted.have_signed(&signed) == Some(true);
    let digest = token_digest(token);
    trusted.check(digest, &signed, is_signed, &TokenRules::default(), now())
}

fn cached_result(
    trusted: &TrustedKeys,
    token: &str,
    seconds: i64,
) -> Option<Result<Identity, TokenError>> {
    let later = now() + TimeDelta::seconds(seconds);
    trusted.cached_result(&token_digest(token), &TokenRules::default(), later)
}

fn cached(trusted: &TrustedKeys, token: &str) -> CheckedToken {
    trusted.checked.read()[&token_digest(token)].clone()
}

fn cached_count(trusted: &TrustedKeys) -> usize {
    trusted.checked.read().len()
}

#[test]
fn a_valid_token_is_cached_with_its_identity() {
    let trusted = trusted();
    let token = token(7, ("jti", json!("a")));
    assert!(cached_result(&trusted, &token, 0).is_none());
    let identity = check(&trusted, &token).unwrap();
    assert_eq!(identity.actor.as_str(), "uaa-client:a");
    let subject = "subject 7".to_owned();
    assert_eq!(identity.authentication, Authentication::Token { subject });
    assert_eq!(cached_result(&trusted, &token, 0), Some(Ok(identity)));
    let expired = Some(Err(TokenError::Expired));
    assert_eq!(cached_result(&trusted, &token, 661), expired);
}

#[test]
fn rejected_tokens_are_not_cached() {
    let trusted = trusted();
    for change in [
        ("exp", json!(0)),
        ("nbf", json!(now().timestamp() + 61)),
        ("scope", json!([])),
        ("iss", json!("other")),
        ("client_id", json!("")),
    ] {
        assert!(check(&trusted, &token(0, change)).is_err());
    }
    assert!(check(&trusted, &TestKey::generate().sign(&json!({}))).is_err());
    assert_eq!(cached_count(&trusted), 0);
}

#[test]
fn the_cache_is_limited_and_evicts_expired_tokens_first() {
    let trusted = trusted();
    let long_lived = token(0, ("exp", json!(now().timestamp() + 3_600)));
    check(&trusted, &long_lived).unwrap();
    let good = cached(&trusted, &long_lived);
    let short_lived = token(0, ("jti", json!("short")));
    check(&trusted, &short_lived).unwrap();
    let soon_expired = cached(&trusted, &short_lived);
    for number in 2..CACHED_TOKENS_MAX {
        let digest = token_digest(&format!("a{number}"));
        trusted.cache(digest, soon_expired.clone(), now());
    }
    assert_eq!(cached_count(&trusted), CACHED_TOKENS_MAX);
    let later = now() + TimeDelta::seconds(661);
    trusted.cache(token_digest("one more"), good.clone(), later);
    assert_eq!(cached_count(&trusted), 2);
    assert!(cached_result(&trusted, &long_lived, 0).is_some());
    for number in 0..2 * CACHED_TOKENS_MAX {
        let digest = token_digest(&format!("b{number}"));
        trusted.cache(digest, good.clone(), later);
        assert!(cached_count(&trusted) <= CACHED_TOKENS_MAX);
    }
}
