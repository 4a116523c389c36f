//! A set of keys that one issuer signs with, and the tokens that were found good under it.

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

/// Keys that are trusted together. Once made they don't change; new keys are a new set, with nothing remembered.
pub(super) struct TrustedKeys {
    issuer: String,
    keys: Vec<TrustedKey>,
    since: Instant,
    checked: RwLock<HashMap<TokenDigest, CheckedToken>>,
}

/// One key.
pub(super) struct TrustedKey {
    /// Its name in the headers of tokens, if it has one.
    pub(super) id: Option<String>,
    /// The key itself.
    pub(super) key: VerificationKey,
}

/// SHA-256 of a token.
type TokenDigest = [u8; 32];

impl TrustedKeys {
    /// Trusts these keys from now on for tokens of this issuer.
    pub(super) fn new(issuer: String, keys: Vec<TrustedKey>) -> Self {
        Self {
            issuer,
            keys,
            since: Instant::now(),
            checked: RwLock::new(HashMap::new()),
        }
    }

    /// Trusts one key, whatever the tokens call it.
    pub(super) fn of_one(key: VerificationKey, issuer: &str) -> Self {
        Self::new(issuer.to_owned(), vec![TrustedKey { id: None, key }])
    }

    /// When this set was made.
    pub(super) fn since(&self) -> Instant {
        self.since
    }

    /// Whether there is no need to look for newer keys to check a token by: the set has the key that the token names, or,
    /// where one of the two has no name, a key that signed it.
    pub(super) fn are_enough_for(&self, token: &SignedToken<'_>) -> bool {
        let wanted = token.key_wanted();
        self.fitting(wanted).any(|trusted| {
            let is_named = trusted.id.is_some() && wanted.id.is_some();
            is_named || token.is_signed_by(&trusted.key)
        })
    }

    /// Whether a key of this name is among them.
    #[cfg(test)]
    pub(super) fn has_key(&self, id: &str) -> bool {
        self.keys.iter().any(|key| key.id.as_deref() == Some(id))
    }

    /// What is remembered of a token that was found good before.
    pub(super) fn recall(&self, token: &str) -> Option<CheckedToken> {
        let checked = self.checked.read().unwrap_or_else(PoisonError::into_inner);
        checked.get(&token_digest(token)).cloned()
    }

    /// Checks a token's signature and then its claims, and remembers it if it is good.
    ///
    /// # Errors
    /// Why it is not.
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
            return Err(TokenRefused::Invalid("no trusted key signed it"));
        }
        let checked = Claims::new(signed.claims()?).check(&self.issuer, rules)?;
        let identity = checked.identity_at(now, rules)?;
        self.remember(token, checked, now);
        Ok(identity)
    }

    /// The keys that may have signed a token that names this one. A key without an id fits any token, and a token without one
    /// any key that is for its algorithm.
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

/// How many good tokens are remembered, so that their signatures are not checked with each request.
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
    fn a_good_token_is_remembered_with_whose_it_is() {
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
    fn what_was_refused_is_not_remembered() {
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
    fn only_so_many_tokens_are_remembered_and_expired_ones_make_room_first() {
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
