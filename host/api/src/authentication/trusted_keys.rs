//! The keys of one issuer, with a cache of the tokens verified with them.

use std::{
    collections::HashMap,
    sync::{PoisonError, RwLock},
    time::Instant,
};

use aws_lc_rs::digest::{SHA256, digest};
use chrono::{DateTime, Utc};

use super::{
    Identity, TokenRefused, TokenRules,
    claims::{CheckedToken, Claims},
    signed_token::{KeyWanted, SignedToken},
    verification_key::VerificationKey,
};

/// A set of trusted keys. It is immutable; new keys are a new set with an empty cache.
pub(super) struct TrustedKeys {
    issuer: String,
    keys: Vec<TrustedKey>,
    since: Instant,
    checked: RwLock<HashMap<TokenDigest, CheckedToken>>,
}

/// One key.
pub(super) struct TrustedKey {
    /// The key id in the headers of tokens, if it has one.
    pub(super) id: Option<String>,
    /// The key itself.
    pub(super) key: VerificationKey,
}

/// SHA-256 of a token.
type TokenDigest = [u8; 32];

impl TrustedKeys {
    /// Creates a set of keys for tokens of this issuer.
    pub(super) fn new(issuer: String, keys: Vec<TrustedKey>) -> Self {
        Self {
            issuer,
            keys,
            since: Instant::now(),
            checked: RwLock::new(HashMap::new()),
        }
    }

    /// Creates a set of one key, whatever key id tokens have.
    pub(super) fn of_one(key: VerificationKey, issuer: &str) -> Self {
        Self::new(issuer.to_owned(), vec![TrustedKey { id: None, key }])
    }

    /// Returns when this set was created.
    pub(super) fn since(&self) -> Instant {
        self.since
    }

    /// Returns whether the set is sufficient to verify a token: it has the token's key id, or, if the key or token has no id, a key
    /// that verifies its signature.
    pub(super) fn are_enough_for(&self, token: &SignedToken<'_>) -> bool {
        let wanted = token.key_wanted();
        self.fitting(wanted).any(|trusted| {
            let is_named = trusted.id.is_some() && wanted.id.is_some();
            is_named || token.is_signed_by(&trusted.key)
        })
    }

    /// Returns whether the set has a key with this id.
    #[cfg(test)]
    pub(super) fn has_key(&self, id: &str) -> bool {
        self.keys.iter().any(|key| key.id.as_deref() == Some(id))
    }

    /// Returns the cached result for a token.
    pub(super) fn recall(&self, token: &str) -> Option<CheckedToken> {
        let checked = self.checked.read().unwrap_or_else(PoisonError::into_inner);
        checked.get(&token_digest(token)).cloned()
    }

    /// Verifies a token's signature and then its claims, and caches it if it is valid.
    ///
    /// # Errors
    /// The reason for rejecting the token.
    pub(super) fn check(
        &self,
        token: &str,
        signed: &SignedToken<'_>,
        rules: &TokenRules,
        now: DateTime<Utc>,
    ) -> Result<Identity, TokenRefused> {
        let is_signed = self
            .fitting(signed.key_wanted())
            .any(|trusted| signed.is_signed_by(&trusted.key));
        if !is_signed {
            return Err(TokenRefused::Invalid("not signed by a trusted key"));
        }
        let checked = Claims::new(signed.claims()?).check(&self.issuer, rules)?;
        let identity = checked.identity_at(now, rules)?;
        self.remember(token, checked, now);
        Ok(identity)
    }

    /// Returns the keys that may have signed a token. A key without an id matches any token, and a token without one matches any
    /// key with its algorithm.
    fn fitting(&self, wanted: KeyWanted<'_>) -> impl Iterator<Item = &TrustedKey> {
        self.keys.iter().filter(move |trusted| {
            let is_named = match (trusted.id.as_deref(), wanted.id) {
                (Some(have), Some(want)) => have == want,
                _ => true,
            };
            is_named && trusted.key.algorithm() == wanted.algorithm
        })
    }

    fn remember(&self, token: &str, checked_token: CheckedToken, now: DateTime<Utc>) {
        let mut checked = self.checked.write().unwrap_or_else(PoisonError::into_inner);
        if checked.len() >= REMEMBERED_TOKENS_MAX {
            checked.retain(|_, token| !token.is_expired_at(now));
        }
        if checked.len() >= REMEMBERED_TOKENS_MAX {
            checked.clear();
        }
        checked.insert(token_digest(token), checked_token);
    }
}

fn token_digest(token: &str) -> TokenDigest {
    let mut bytes = TokenDigest::default();
    bytes.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
    bytes
}

/// Maximum number of cached tokens, whose signatures are not verified again.
const REMEMBERED_TOKENS_MAX: usize = 4_096;

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use chrono::TimeDelta;
    use keywright_core::authorization::Authentication;
    use serde_json::{Value, json};

    use super::*;
    use crate::authentication::test_key::TestKey;

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

    fn check(trusted: &TrustedKeys, token: &str) -> Result<Identity, TokenRefused> {
        let signed = SignedToken::parse(token)?;
        trusted.check(token, &signed, &TokenRules::default(), now())
    }

    fn remembered(trusted: &TrustedKeys) -> usize {
        trusted.checked.read().unwrap().len()
    }

    #[test]
    fn a_valid_token_is_cached_with_its_identity() {
        let trusted = trusted();
        let token = token(7, ("jti", json!("a")));
        assert!(trusted.recall(&token).is_none());
        let identity = check(&trusted, &token).unwrap();
        assert_eq!(identity.actor.as_str(), "uaa-client:a");
        let subject = "subject 7".to_owned();
        assert_eq!(identity.authentication, Authentication::Token { subject });
        let recalled = trusted.recall(&token).unwrap();
        let rules = TokenRules::default();
        assert_eq!(recalled.identity_at(now(), &rules), Ok(identity));
        let later = now() + TimeDelta::seconds(661);
        let expired = recalled.identity_at(later, &rules);
        assert_eq!(expired, Err(TokenRefused::Expired));
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
        assert_eq!(remembered(&trusted), 0);
    }

    #[test]
    fn the_cache_is_limited_and_evicts_expired_tokens_first() {
        let trusted = trusted();
        let long_lived = token(0, ("exp", json!(now().timestamp() + 3_600)));
        check(&trusted, &long_lived).unwrap();
        let good = trusted.recall(&long_lived).unwrap();
        let short_lived = token(0, ("jti", json!("short")));
        check(&trusted, &short_lived).unwrap();
        let soon_expired = trusted.recall(&short_lived).unwrap();
        for number in 2..REMEMBERED_TOKENS_MAX {
            trusted.remember(&format!("a{number}"), soon_expired.clone(), now());
        }
        assert_eq!(remembered(&trusted), REMEMBERED_TOKENS_MAX);
        let later = now() + TimeDelta::seconds(661);
        trusted.remember("one more", good.clone(), later);
        assert_eq!(remembered(&trusted), 2);
        assert!(trusted.recall(&long_lived).is_some());
        for number in 0..2 * REMEMBERED_TOKENS_MAX {
            trusted.remember(&format!("b{number}"), good.clone(), later);
            assert!(remembered(&trusted) <= REMEMBERED_TOKENS_MAX);
        }
    }
}
