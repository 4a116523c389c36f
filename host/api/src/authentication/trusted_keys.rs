//! The keys of one issuer, with a cache of the tokens verified with them.

use std::{
    collections::HashMap,
    sync::{PoisonError, RwLock},
};

use aws_lc_rs::digest::{SHA256, digest};
use chrono::{DateTime, Utc};

use super::{
    identity::Identity,
    token::{CheckedToken, Claims, KeyReference, SignedToken, TokenError},
    token_rules::TokenRules,
    verification_key::VerificationKey,
};

/// A set of trusted keys. A set is immutable; a set with other keys starts with an empty cache.
pub(super) struct TrustedKeys {
    issuer: String,
    keys: Vec<TrustedKey>,
    checked: RwLock<HashMap<TokenDigest, CheckedToken>>,
}

/// A trusted key.
#[derive(PartialEq)]
pub(super) struct TrustedKey {
    /// The key id in the headers of tokens, if it has one.
    pub(super) id: Option<String>,
    pub(super) key: VerificationKey,
}

/// SHA-256 of a token.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct TokenDigest([u8; 32]);

impl TokenDigest {
    pub(super) fn of(token: &str) -> Self {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
        Self(bytes)
    }
}

impl TrustedKeys {
    /// Creates a set of keys for tokens of this issuer.
    pub(super) fn new(issuer: String, keys: Vec<TrustedKey>) -> Self {
        Self {
            issuer,
            keys,
            checked: RwLock::new(HashMap::new()),
        }
    }

    /// Creates a set of one key, which matches tokens with any key id.
    pub(super) fn of_one(key: VerificationKey, issuer: &str) -> Self {
        Self::new(issuer.to_owned(), vec![TrustedKey { id: None, key }])
    }

    /// Returns whether two sets have the same issuer and keys.
    pub(super) fn equal(&self, other: &Self) -> bool {
        self.issuer == other.issuer && self.keys == other.keys
    }

    /// Returns whether a key of this set has signed a token. `None` means that another set could contain the signing key: no key
    /// of this set verifies the signature, and none of them has the token's key id.
    pub(super) fn have_signed(&self, token: &SignedToken<'_>) -> Option<bool> {
        let reference = token.key_reference();
        let mut is_named = false;
        for trusted in self.candidates(reference) {
            if token.is_signed_by(&trusted.key) {
                return Some(true);
            }
            is_named |= trusted.id.is_some() && reference.id.is_some();
        }
        is_named.then_some(false)
    }

    /// Returns whether the set has a key with this id.
    #[cfg(test)]
    pub(super) fn has_key(&self, id: &str) -> bool {
        self.keys.iter().any(|key| key.id.as_deref() == Some(id))
    }

    /// Returns the result for a token if it is cached.
    pub(super) fn cached_result(
        &self,
        token: &TokenDigest,
        rules: &TokenRules,
        now: DateTime<Utc>,
    ) -> Option<Result<Identity, TokenError>> {
        let checked = self.checked.read().unwrap_or_else(PoisonError::into_inner);
        Some(checked.get(token)?.identity_at(now, rules))
    }

    /// Checks the claims of a token that these keys [have signed](Self::have_signed), and caches it if it is valid.
    pub(super) fn check(
        &self,
        token: TokenDigest,
        signed: &SignedToken<'_>,
        is_signed: bool,
        rules: &TokenRules,
        now: DateTime<Utc>,
    ) -> Result<Identity, TokenError> {
        if !is_signed {
            return Err(TokenError::Invalid("not signed by a trusted key"));
        }
        let checked = Claims::new(signed.claims()?).check(&self.issuer, rules)?;
        let identity = checked.identity_at(now, rules)?;
        self.cache(token, checked, now);
        Ok(identity)
    }

    /// Returns the keys that may have signed a token. A key without an id matches any token with its algorithm, and a token without
    /// a key id matches any key with its algorithm.
    fn candidates(&self, reference: KeyReference<'_>) -> impl Iterator<Item = &TrustedKey> {
        self.keys.iter().filter(move |trusted| {
            let is_named = match (trusted.id.as_deref(), reference.id) {
                (Some(have), Some(want)) => have == want,
                _ => true,
            };
            is_named && trusted.key.algorithm() == reference.algorithm
        })
    }

    fn cache(&self, token: TokenDigest, checked_token: CheckedToken, now: DateTime<Utc>) {
        let mut checked = self.checked.write().unwrap_or_else(PoisonError::into_inner);
        if checked.len() >= CACHED_TOKENS_MAX {
            checked.retain(|_, token| !token.is_expired_at(now));
        }
        if checked.len() >= CACHED_TOKENS_MAX {
            checked.clear();
        }
        checked.insert(token, checked_token);
    }
}

/// Maximum number of cached tokens, whose signatures are not verified again.
const CACHED_TOKENS_MAX: usize = 4_096;

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use chrono::TimeDelta;
    use keywright_core::authorization::Authentication;
    use serde_json::{Value, json};

    use super::*;
    use crate::authentication::verification_key::test_key::TestKey;

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
        let digest = TokenDigest::of(token);
        trusted.check(digest, &signed, is_signed, &TokenRules::default(), now())
    }

    fn cached_result(
        trusted: &TrustedKeys,
        token: &str,
        seconds: i64,
    ) -> Option<Result<Identity, TokenError>> {
        let later = now() + TimeDelta::seconds(seconds);
        trusted.cached_result(&TokenDigest::of(token), &TokenRules::default(), later)
    }

    fn cached(trusted: &TrustedKeys, token: &str) -> CheckedToken {
        trusted.checked.read().unwrap()[&TokenDigest::of(token)].clone()
    }

    fn cached_count(trusted: &TrustedKeys) -> usize {
        trusted.checked.read().unwrap().len()
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
            let digest = TokenDigest::of(&format!("a{number}"));
            trusted.cache(digest, soon_expired.clone(), now());
        }
        assert_eq!(cached_count(&trusted), CACHED_TOKENS_MAX);
        let later = now() + TimeDelta::seconds(661);
        trusted.cache(TokenDigest::of("one more"), good.clone(), later);
        assert_eq!(cached_count(&trusted), 2);
        assert!(cached_result(&trusted, &long_lived, 0).is_some());
        for number in 0..2 * CACHED_TOKENS_MAX {
            let digest = TokenDigest::of(&format!("b{number}"));
            trusted.cache(digest, good.clone(), later);
            assert!(cached_count(&trusted) <= CACHED_TOKENS_MAX);
        }
    }
}
