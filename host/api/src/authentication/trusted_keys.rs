//! A set of keys that one issuer signs with, and the tokens that were found good under it.

use std::{
    collections::HashMap,
    sync::{PoisonError, RwLock},
    time::Instant,
};

use aws_lc_rs::digest::{SHA256, digest};
use chrono::{DateTime, Utc};
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header};

use super::{
    TokenRefused,
    claims::{CheckedToken, Claims},
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
    /// Its public half.
    pub(super) key: DecodingKey,
}

/// A configured key that can't be used.
#[derive(Debug, thiserror::Error)]
#[error("the verification key is not an RSA public key in PEM")]
pub struct KeyRefused(#[source] jsonwebtoken::errors::Error);

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
    ///
    /// # Errors
    /// When it is not an RSA public key in PEM.
    pub(super) fn of_pem(public_key_pem: &str, issuer: &str) -> Result<Self, KeyRefused> {
        let key = DecodingKey::from_rsa_pem(public_key_pem.as_bytes()).map_err(KeyRefused)?;
        Ok(Self::new(
            issuer.to_owned(),
            vec![TrustedKey { id: None, key }],
        ))
    }

    /// When this set was made.
    pub(super) fn since(&self) -> Instant {
        self.since
    }

    /// Whether a token with this key id can be checked with this set. A key without an id fits any token, and a token
    /// without one any key.
    pub(super) fn may_verify(&self, key_id: Option<&str>) -> bool {
        self.fitting(key_id).next().is_some()
    }

    /// What is remembered of a token that was found good before.
    pub(super) fn recall(&self, token: &str) -> Option<CheckedToken> {
        let checked = self.checked.read().unwrap_or_else(PoisonError::into_inner);
        checked.get(&token_digest(token)).cloned()
    }

    /// Checks a token's signature and all of its claims that the time has no part in, and remembers it if it is good.
    ///
    /// # Errors
    /// [`TokenRefused::Invalid`].
    pub(super) fn check(
        &self,
        token: &str,
        key_id: Option<&str>,
        now: DateTime<Utc>,
    ) -> Result<CheckedToken, TokenRefused> {
        let validation = signature_validation();
        let claims = self
            .fitting(key_id)
            .find_map(|trusted| decode::<Claims>(token, &trusted.key, &validation).ok())
            .ok_or(TokenRefused::Invalid("no trusted key signed its claims"))?
            .claims;
        let checked = claims.check(&self.issuer)?;
        self.remember(token, checked.clone(), now);
        Ok(checked)
    }

    fn fitting(&self, key_id: Option<&str>) -> impl Iterator<Item = &TrustedKey> {
        self.keys
            .iter()
            .filter(move |trusted| match (trusted.id.as_deref(), key_id) {
                (Some(have), Some(want)) => have == want,
                _ => true,
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

/// The id of the key that a token says it was signed with.
///
/// # Errors
/// When it is no token, or was signed in another way than RS256, or asks for extensions.
pub(super) fn key_id(token: &str) -> Result<Option<String>, TokenRefused> {
    let header = decode_header(token).map_err(|_| TokenRefused::Invalid("it is malformed"))?;
    if header.alg != Algorithm::RS256 {
        return Err(TokenRefused::Invalid("its algorithm is not RS256"));
    }
    if header.crit.is_some() {
        return Err(TokenRefused::Invalid("it asks for extensions"));
    }
    Ok(header.kid)
}

/// The signature alone: time and issuer are checked against this server's own clock and rules.
fn signature_validation() -> Validation {
    let mut validation = Validation::new(Algorithm::RS256);
    validation.required_spec_claims.clear();
    validation.validate_exp = false;
    validation.validate_nbf = false;
    validation.validate_aud = false;
    validation
}

fn token_digest(token: &str) -> TokenDigest {
    let mut bytes = TokenDigest::default();
    bytes.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
    bytes
}

/// How many good tokens are remembered, so that their signatures are not checked with each request.
const REMEMBERED_TOKENS_MAX: usize = 4_096;
