//! What a token says, and what follows from it.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use keywright_core::permission::Actor;
use serde_json::{Map, Value};

use super::{
    identity::Identity,
    token_rules::{Bearer, ClaimSettings, ScopeForm, TokenRules},
};

/// Why a token does not let its bearer pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TokenRefused {
    /// There is none.
    Absent,
    /// It was good, but has expired.
    Expired,
    /// It was never good, or is not good yet; the reason is for the log.
    Invalid(&'static str),
    /// No token is good here: callers have client certificates.
    NotAccepted,
    /// It is good, but not for this server: it lacks one of these scopes.
    ScopesMissing(Arc<str>),
    /// It can't be checked: no keys could be had so far.
    Unverifiable,
}

/// The claims of a token whose signature is good.
pub(super) struct Claims(Map<String, Value>);

/// What is kept of a token that was checked; only the time can still change the answer.
#[derive(Clone, Debug)]
pub(super) struct CheckedToken {
    identity: Identity,
    expires_at_seconds: i64,
    not_before_seconds: Option<i64>,
    has_scopes: bool,
}

impl Claims {
    /// Makes claims of a token's payload.
    pub(super) fn new(payload: Map<String, Value>) -> Self {
        Self(payload)
    }

    /// Checks everything that the time has no part in.
    ///
    /// # Errors
    /// [`TokenRefused::Invalid`].
    pub(super) fn check(
        &self,
        issuer: &str,
        rules: &TokenRules,
    ) -> Result<CheckedToken, TokenRefused> {
        if issuer.is_empty() || self.text("iss")? != Some(issuer) {
            return Err(TokenRefused::Invalid("another issuer made it"));
        }
        if let Some(audience) = &rules.audience
            && !self.is_for(audience)
        {
            return Err(TokenRefused::Invalid("it is for another audience"));
        }
        let expires_at_seconds = self.time("exp")?;
        Ok(CheckedToken {
            expires_at_seconds: expires_at_seconds
                .ok_or(TokenRefused::Invalid("it does not say when it expires"))?,
            not_before_seconds: self.time("nbf")?,
            has_scopes: self.has_scopes(rules)?,
            identity: Identity::of_token(self.actor(rules)?, self.name(&rules.claims.subject)?),
        })
    }

    /// Whether the token is meant for this audience, alone or among others (RFC 7519, section 4.1.3).
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

    fn has_scopes(&self, rules: &TokenRules) -> Result<bool, TokenRefused> {
        let malformed = || TokenRefused::Invalid("its scopes are not of the configured form");
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
        let is_there = |required: &String| scopes.contains(&required.as_str());
        Ok(rules.scopes_required.iter().all(is_there))
    }

    fn actor(&self, rules: &TokenRules) -> Result<Actor, TokenRefused> {
        let claims = &rules.claims;
        let bearer = self.bearer(claims)?;
        let id = |claim| Ok(self.name(claim)?.unwrap_or_default());
        let actor = match bearer {
            Bearer::Client => Actor::client(id(&claims.client_id)?),
            Bearer::User => Actor::user(id(&claims.user_id)?),
        };
        actor.map_err(|_| TokenRefused::Invalid("it does not say whose it is"))
    }

    /// Tells a client's token from a user's.
    ///
    /// With `client_subjects`, a token whose subject is its client must be of a listed client. It is refused otherwise: a user
    /// may have been given the id of the client through which they log in, and a client the id of a user (RFC 9700, section
    /// 4.15).
    fn bearer(&self, claims: &ClaimSettings) -> Result<Bearer, TokenRefused> {
        if claims.client_subjects.is_empty() {
            return claims
                .grant_type
                .bearer(self.text(&claims.grant_type.claim)?)
                .ok_or(TokenRefused::Invalid("its grant type names no actor"));
        }
        let client_id = self.text(&claims.client_id)?.unwrap_or_default();
        if self.text(&claims.subject)? != Some(client_id) {
            return Ok(Bearer::User);
        }
        if claims.is_client_subject(client_id) {
            return Ok(Bearer::Client);
        }
        Err(TokenRefused::Invalid(
            "its subject is its client, which is not among client_subjects",
        ))
    }

    /// A claim that names somebody. It is remembered, so its length is bounded.
    fn name(&self, claim: &str) -> Result<Option<&str>, TokenRefused> {
        match self.text(claim)? {
            Some(name) if name.chars().count() > NAME_CHARACTERS_MAX => {
                Err(TokenRefused::Invalid("a name in it is too long"))
            }
            name => Ok(name),
        }
    }

    fn text(&self, claim: &str) -> Result<Option<&str>, TokenRefused> {
        match self.0.get(claim) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(TokenRefused::Invalid("a claim that must be a text is none")),
        }
    }

    /// A time, in whole seconds since 1970. RFC 7519 allows fractions too; no provider is known that sends them, and a
    /// number that readers could round differently is no good as a limit.
    fn time(&self, claim: &str) -> Result<Option<i64>, TokenRefused> {
        let Some(value) = self.0.get(claim) else {
            return Ok(None);
        };
        match value.as_i64() {
            Some(seconds) if seconds <= TIME_SECONDS_MAX => Ok(Some(seconds)),
            _ => Err(TokenRefused::Invalid("a time in it is no time")),
        }
    }
}

impl CheckedToken {
    /// Whose it is, if the token is good at this time.
    ///
    /// # Errors
    /// When it is not good yet, has expired, or lacks scopes.
    pub(super) fn identity_at(
        &self,
        now: DateTime<Utc>,
        rules: &TokenRules,
    ) -> Result<Identity, TokenRefused> {
        let now_seconds = now.timestamp();
        if self
            .not_before_seconds
            .is_some_and(|not_before| not_before.saturating_sub(now_seconds) > SKEW_SECONDS_MAX)
        {
            return Err(TokenRefused::Invalid("it is not valid yet"));
        }
        if self.is_expired_at(now) {
            return Err(TokenRefused::Expired);
        }
        if !self.has_scopes {
            return Err(TokenRefused::ScopesMissing(Arc::clone(&rules.scopes_text)));
        }
        Ok(self.identity.clone())
    }

    /// Whether it will never be good again.
    pub(super) fn is_expired_at(&self, now: DateTime<Utc>) -> bool {
        now.timestamp().saturating_sub(self.expires_at_seconds) > SKEW_SECONDS_MAX
    }
}

/// How far the clocks of the identity provider and of this server may differ.
const SKEW_SECONDS_MAX: i64 = 60;

/// The latest time that a token may name, the end of the year 9999: what lies beyond is a mistake, not a time.
const TIME_SECONDS_MAX: i64 = 253_402_300_799;

/// The longest name of a client, a user or a subject, in characters (OIDC Core 1.0, section 2, for `sub`).
const NAME_CHARACTERS_MAX: usize = 255;
