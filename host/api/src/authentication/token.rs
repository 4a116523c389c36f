//! Tokens: their parts, the trusted keys that have signed them, their claims, and the cache of verified tokens.

use std::{collections::HashMap, sync::Arc};

use aws_lc_rs::digest::{SHA256, digest};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use chrono::{DateTime, Utc};
use jsonwebtoken::Algorithm;
use keywright_core::{authorization::Authentication, permission::Actor};
use parking_lot::RwLock;
use serde_json::{Map, Value};
use strum::IntoStaticStr;

use super::{
    keys::{TrustedKey, VerificationKey},
    token_rules::{Bearer, ClaimSettings, ScopeForm, TokenRules},
};

/// The identity of a caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) actor: Actor,
    pub(super) authentication: Authentication,
}

impl Identity {
    /// Creates the identity of a valid token. Without a subject, the client's or user's id is the subject.
    pub(super) fn of_token(actor: Actor, subject: Option<&str>) -> Self {
        let (_, id) = actor.as_str().split_once(':').unwrap_or_default();
        let subject = subject.unwrap_or(id).to_owned();
        Self {
            authentication: Authentication::Token { subject },
            actor,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub(crate) enum TokenError {
    /// There is no token.
    Absent,
    /// The token was valid, but has expired.
    Expired,
    /// The token is invalid, or not valid yet; the reason is for the log.
    Invalid(&'static str),
    /// Tokens are not accepted, only client certificates.
    NotAccepted,
    /// The token is valid, but lacks one of these scopes.
    ScopesMissing(Arc<str>),
    /// The token can't be verified: no keys are available.
    Unverifiable,
}

/// A JWS in compact form (RFC 7515, section 7.1), not verified yet.
pub(super) struct SignedToken<'a> {
    /// The signed part: header and payload.
    message: &'a str,
    signature: Vec<u8>,
    algorithm: Algorithm,
    key_id: Option<String>,
    payload: &'a str,
}

impl<'a> SignedToken<'a> {
    /// Parses a token: three parts in base64url without padding, the first of which is a header with only supported features.
    /// Keys in the header (`jku`, `jwk`, `x5u`, `x5c`) are ignored: keys come only from the configuration and the trusted
    /// provider.
    pub(super) fn parse(token: &'a str) -> Result<Self, TokenError> {
        let malformed = TokenError::Invalid("malformed");
        let (message, signature) = token.rsplit_once('.').ok_or(malformed.clone())?;
        let (header, payload) = message
            .split_once('.')
            .filter(|(_, payload)| !payload.contains('.'))
            .ok_or(malformed.clone())?;
        let header = decode_object(header).ok_or(malformed.clone())?;
        let algorithm = match header.get("alg").and_then(Value::as_str) {
            Some("RS256") => Algorithm::RS256,
            Some("ES256") => Algorithm::ES256,
            _ => return Err(TokenError::Invalid("algorithm is neither RS256 nor ES256")),
        };
        refuse_extensions(&header)?;
        Ok(Self {
            message,
            signature: URL_SAFE_NO_PAD.decode(signature).map_err(|_| malformed)?,
            algorithm,
            key_id: match header.get("kid") {
                None => None,
                Some(Value::String(key_id)) => Some(key_id.clone()),
                Some(_) => return Err(TokenError::Invalid("key id is not a string")),
            },
            payload,
        })
    }

    /// Parses the claims: a JSON object, with the checks of [`keywright_json::check`].
    pub(super) fn claims(&self) -> Result<Claims, TokenError> {
        decode_object(self.payload)
            .map(Claims)
            .ok_or(TokenError::Invalid(
                "payload is not an object, or has duplicate claims",
            ))
    }
}

/// Rejects headers that change the meaning of the token: critical extensions (`crit`), nested tokens (`cty`), and token types for
/// other uses, such as proofs or logout tokens (`typ`; RFC 8725, section 3.11).
fn refuse_extensions(header: &Map<String, Value>) -> Result<(), TokenError> {
    if header.contains_key("crit") {
        return Err(TokenError::Invalid("critical extensions are not supported"));
    }
    if header.contains_key("cty") {
        return Err(TokenError::Invalid("nested tokens are not supported"));
    }
    let Some(token_type) = header.get("typ") else {
        return Ok(());
    };
    let is_known = token_type.as_str().is_some_and(|token_type| {
        TYPES
            .iter()
            .any(|known| token_type.eq_ignore_ascii_case(known))
    });
    if is_known {
        Ok(())
    } else {
        Err(TokenError::Invalid("wrong token type"))
    }
}

fn decode_object(part: &str) -> Option<Map<String, Value>> {
    keywright_json::read_bytes(&URL_SAFE_NO_PAD.decode(part).ok()?).ok()
}

/// The accepted token types (RFC 7519, section 5.1; RFC 9068, section 2.1); not case-sensitive.
const TYPES: [&str; 4] = ["JWT", "application/jwt", "at+jwt", "application/at+jwt"];

/// The claims of a token with a valid signature.
pub(super) struct Claims(Map<String, Value>);

/// The verified properties of a token. After this verification, its validity depends only on the time.
#[derive(Clone, Debug)]
pub(super) struct CheckedToken {
    identity: Identity,
    expires_at_seconds: i64,
    not_before_seconds: Option<i64>,
    has_scopes: bool,
}

impl Claims {
    /// Checks the claims, but does not compare times with the clock.
    pub(super) fn check(
        &self,
        issuer: &str,
        rules: &TokenRules,
    ) -> Result<CheckedToken, TokenError> {
        if issuer.is_empty() || self.text("iss")? != Some(issuer) {
            return Err(TokenError::Invalid("wrong issuer"));
        }
        if let Some(audience) = &rules.audience
            && !self.is_for(audience)
        {
            return Err(TokenError::Invalid("wrong audience"));
        }
        let expires_at_seconds = self.time("exp")?;
        Ok(CheckedToken {
            expires_at_seconds: expires_at_seconds.ok_or(TokenError::Invalid("no expiry"))?,
            not_before_seconds: self.time("nbf")?,
            has_scopes: self.has_scopes(rules)?,
            identity: Identity::of_token(self.actor(rules)?, self.name(&rules.claims.subject)?),
        })
    }

    /// Checks the claims of an ID token (OIDC Core 1.0, section 3.1.3.7).
    pub(super) fn check_id_token(
        &self,
        issuer: &str,
        client_id: &str,
        nonce: &str,
        now: DateTime<Utc>,
    ) -> Result<(), TokenError> {
        if issuer.is_empty() || self.text("iss")? != Some(issuer) {
            return Err(TokenError::Invalid("wrong issuer"));
        }
        let is_authorized = self.text("azp")?.is_none_or(|party| party == client_id);
        if !self.is_for(client_id) || !is_authorized {
            return Err(TokenError::Invalid("wrong audience"));
        }
        let expires_at_seconds = self.time("exp")?.ok_or(TokenError::Invalid("no expiry"))?;
        if now.timestamp().saturating_sub(expires_at_seconds) > SKEW_SECONDS_MAX {
            return Err(TokenError::Invalid("it has expired"));
        }
        if self.text("nonce")? != Some(nonce) {
            return Err(TokenError::Invalid("wrong nonce"));
        }
        Ok(())
    }

    /// Returns whether the token's audience includes this one (RFC 7519, section 4.1.3).
    fn is_for(&self, audience: &str) -> bool {
        match self.0.get("aud") {
            Some(Value::String(only)) => only == audience,
            Some(Value::Array(several)) => {
                several.iter().all(Value::is_string)
                    && several.iter().any(|one| one.as_str() == Some(audience))
            }
            _ => false,
        }
    }

    fn has_scopes(&self, rules: &TokenRules) -> Result<bool, TokenError> {
        let malformed = || TokenError::Invalid("scopes are not in the configured format");
        let scopes: Vec<&str> = match (self.0.get(&rules.claims.scope), rules.claims.scope_form) {
            (None, _) => Vec::new(),
            (Some(Value::Array(scopes)), ScopeForm::Array) => scopes
                .iter()
                .map(Value::as_str)
                .collect::<Option<_>>()
                .ok_or_else(malformed)?,
            (Some(Value::String(scopes)), ScopeForm::Text) => scopes.split(' ').collect(),
            (Some(_), _) => return Err(malformed()),
        };
        let is_present = |required: &String| scopes.contains(&required.as_str());
        Ok(rules.scopes_required.iter().all(is_present))
    }

    fn actor(&self, rules: &TokenRules) -> Result<Actor, TokenError> {
        let claims = &rules.claims;
        let bearer = self.bearer(claims)?;
        let id = |claim| Ok(self.name(claim)?.unwrap_or_default());
        let actor = match bearer {
            Bearer::Client => Actor::client(id(&claims.client_id)?),
            Bearer::User => Actor::user(id(&claims.user_id)?),
        };
        actor.map_err(|_| TokenError::Invalid("invalid actor"))
    }

    /// Determines whether the token is a client's or a user's.
    ///
    /// With `client_subjects`, a token whose subject is its client is accepted only if the client is listed, because a user
    /// may have the same id as a client (RFC 9700, section 4.15).
    fn bearer(&self, claims: &ClaimSettings) -> Result<Bearer, TokenError> {
        if claims.client_subjects.is_empty() {
            return claims
                .grant_type
                .bearer(self.text(&claims.grant_type.claim)?)
                .ok_or(TokenError::Invalid(
                    "grant type is neither a client's nor a user's",
                ));
        }
        let client_id = self.text(&claims.client_id)?.unwrap_or_default();
        if self.text(&claims.subject)? != Some(client_id) {
            return Ok(Bearer::User);
        }
        if claims.is_client_subject(client_id) {
            return Ok(Bearer::Client);
        }
        Err(TokenError::Invalid(
            "subject is a client that is not in client_subjects",
        ))
    }

    /// Returns a claim that contains a name. Its length is limited, because it is cached.
    fn name(&self, claim: &str) -> Result<Option<&str>, TokenError> {
        match self.text(claim)? {
            Some(name) if name.chars().count() > NAME_CHARACTERS_MAX => {
                Err(TokenError::Invalid("a name is too long"))
            }
            name => Ok(name),
        }
    }

    fn text(&self, claim: &str) -> Result<Option<&str>, TokenError> {
        match self.0.get(claim) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(TokenError::Invalid("a claim must be a string")),
        }
    }

    /// Returns a time, in whole seconds since 1970. RFC 7519 also allows fractions, but no known provider sends them, and readers
    /// could round them differently.
    fn time(&self, claim: &str) -> Result<Option<i64>, TokenError> {
        let Some(value) = self.0.get(claim) else {
            return Ok(None);
        };
        match value.as_i64() {
            Some(seconds) if seconds <= TIME_SECONDS_MAX => Ok(Some(seconds)),
            _ => Err(TokenError::Invalid("a time claim is not a number")),
        }
    }
}

impl CheckedToken {
    fn identity_at(&self, now: DateTime<Utc>, rules: &TokenRules) -> Result<Identity, TokenError> {
        let now_seconds = now.timestamp();
        if self
            .not_before_seconds
            .is_some_and(|not_before| not_before.saturating_sub(now_seconds) > SKEW_SECONDS_MAX)
        {
            return Err(TokenError::Invalid("not valid yet"));
        }
        if self.is_expired_at(now) {
            return Err(TokenError::Expired);
        }
        if !self.has_scopes {
            return Err(TokenError::ScopesMissing(Arc::clone(&rules.scopes_text)));
        }
        Ok(self.identity.clone())
    }

    fn is_expired_at(&self, now: DateTime<Utc>) -> bool {
        now.timestamp().saturating_sub(self.expires_at_seconds) > SKEW_SECONDS_MAX
    }
}

/// A set of trusted keys. A set is immutable; a set with other keys starts with an empty cache.
pub(super) struct TrustedKeys {
    issuer: String,
    keys: Vec<TrustedKey>,
    checked: RwLock<HashMap<TokenDigest, CheckedToken>>,
}

/// SHA-256 of a token.
type TokenDigest = [u8; 32];

pub(super) fn token_digest(token: &str) -> TokenDigest {
    let mut bytes = TokenDigest::default();
    bytes.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
    bytes
}

impl TrustedKeys {
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

    pub(super) fn issuer(&self) -> &str {
        &self.issuer
    }

    pub(super) fn equal(&self, other: &Self) -> bool {
        self.issuer == other.issuer && self.keys == other.keys
    }

    /// Returns whether a key of this set has signed a token. Returns `None` if a newer set could contain the signing key: no key
    /// of this set verifies the signature, and no key of this set has the token's key id.
    ///
    /// A key without an id may have signed any token with its algorithm. A token without a key id may have been signed by any key
    /// with its algorithm.
    pub(super) fn have_signed(&self, token: &SignedToken<'_>) -> Option<bool> {
        let mut is_named = false;
        for TrustedKey { id, key } in &self.keys {
            let named = id.as_ref().zip(token.key_id.as_ref());
            if key.algorithm != token.algorithm || named.is_some_and(|(have, want)| have != want) {
                continue;
            }
            if key.has_signed(token.message, &token.signature) {
                return Some(true);
            }
            is_named |= named.is_some();
        }
        is_named.then_some(false)
    }

    #[cfg(test)]
    pub(super) fn has_key(&self, id: &str) -> bool {
        self.keys.iter().any(|key| key.id.as_deref() == Some(id))
    }

    pub(super) fn cached_result(
        &self,
        token: &TokenDigest,
        rules: &TokenRules,
        now: DateTime<Utc>,
    ) -> Option<Result<Identity, TokenError>> {
        let checked = self.checked.read();
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
        let checked = signed.claims()?.check(&self.issuer, rules)?;
        let identity = checked.identity_at(now, rules)?;
        self.cache(token, checked, now);
        Ok(identity)
    }

    fn cache(&self, token: TokenDigest, checked_token: CheckedToken, now: DateTime<Utc>) {
        let mut checked = self.checked.write();
        if checked.len() >= CACHED_TOKENS_MAX {
            checked.retain(|_, token| !token.is_expired_at(now));
        }
        if checked.len() >= CACHED_TOKENS_MAX {
            checked.clear();
        }
        checked.insert(token, checked_token);
    }
}

/// Maximum difference between the clocks of the identity provider and this server.
const SKEW_SECONDS_MAX: i64 = 60;

/// The latest accepted time, the end of the year 9999; later times are errors.
const TIME_SECONDS_MAX: i64 = 253_402_300_799;

/// Maximum length of the name of a client, user or subject, in characters (OIDC Core 1.0, section 2, for `sub`).
const NAME_CHARACTERS_MAX: usize = 255;

/// Maximum number of cached tokens, whose signatures are not verified again.
const CACHED_TOKENS_MAX: usize = 4_096;

#[cfg(test)]
mod tests;
