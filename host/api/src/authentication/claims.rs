//! What a token says, and what follows from it.

use chrono::{DateTime, Utc};
use serde::Deserialize;

/// Who is asking, as permissions name it: `uaa-client:<client id>`, `uaa-user:<user id>` or `mtls-app:<UUID>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor(String);

impl Actor {
    /// The actor's name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The holder of a client certificate, by the Organization Unit that identifies it.
    pub(super) fn of_organization_unit(unit: &str) -> Self {
        Self(format!("mtls-{unit}"))
    }
}

/// Why a token does not let its bearer pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenRefused {
    /// There is none.
    Absent,
    /// It was good, but has expired.
    Expired,
    /// It was never good, or is not good yet; the reason is for the log.
    Invalid(&'static str),
    /// It is good, but not for this server.
    ScopesMissing,
    /// It can't be checked: no keys could be had so far.
    Unverifiable,
}

/// The claims that are used of a token whose signature is good.
#[derive(Debug, Deserialize)]
pub(super) struct Claims {
    iss: Option<String>,
    exp: Option<i64>,
    nbf: Option<i64>,
    grant_type: Option<String>,
    client_id: Option<String>,
    user_id: Option<String>,
    #[serde(default)]
    scope: Vec<String>,
}

/// What is kept of a token that was checked; only the time can still change the answer.
#[derive(Clone, Debug)]
pub(super) struct CheckedToken {
    actor: Actor,
    expires_at_seconds: i64,
    not_before_seconds: Option<i64>,
    has_scopes: bool,
}

impl Claims {
    /// Checks everything that the time has no part in.
    ///
    /// # Errors
    /// [`TokenRefused::Invalid`].
    pub(super) fn check(self, issuer: &str) -> Result<CheckedToken, TokenRefused> {
        if issuer.is_empty() || self.iss.as_deref() != Some(issuer) {
            return Err(TokenRefused::Invalid("another issuer made it"));
        }
        let has_scopes = SCOPES_REQUIRED
            .iter()
            .all(|required| self.scope.iter().any(|scope| scope == required));
        Ok(CheckedToken {
            expires_at_seconds: self
                .exp
                .ok_or(TokenRefused::Invalid("it does not say when it expires"))?,
            not_before_seconds: self.nbf,
            has_scopes,
            actor: self.actor()?,
        })
    }

    fn actor(&self) -> Result<Actor, TokenRefused> {
        let (kind, id) = match self.grant_type.as_deref() {
            Some("client_credentials") => ("uaa-client", &self.client_id),
            Some("password") => ("uaa-user", &self.user_id),
            _ => return Err(TokenRefused::Invalid("its grant type names no actor")),
        };
        match id {
            Some(id) if !id.is_empty() => Ok(Actor(format!("{kind}:{id}"))),
            _ => Err(TokenRefused::Invalid("it does not say whose it is")),
        }
    }
}

impl CheckedToken {
    /// The actor, if the token is good at this time.
    ///
    /// # Errors
    /// When it is not good yet, has expired, or lacks scopes.
    pub(super) fn actor_at(&self, now: DateTime<Utc>) -> Result<Actor, TokenRefused> {
        let now_seconds = now.timestamp();
        if self
            .not_before_seconds
            .is_some_and(|not_before| not_before.saturating_sub(now_seconds) > SKEW_SECONDS_MAX)
        {
            return Err(TokenRefused::Invalid("it is not valid yet"));
        }
        if now_seconds.saturating_sub(self.expires_at_seconds) > SKEW_SECONDS_MAX {
            return Err(TokenRefused::Expired);
        }
        if !self.has_scopes {
            return Err(TokenRefused::ScopesMissing);
        }
        Ok(self.actor.clone())
    }

    /// Whether it will never be good again.
    pub(super) fn is_expired_at(&self, now: DateTime<Utc>) -> bool {
        self.actor_at(now) == Err(TokenRefused::Expired)
    }
}

/// The scopes that a token must have, both of them.
const SCOPES_REQUIRED: [&str; 2] = ["credhub.read", "credhub.write"];

/// How far the clocks of the identity provider and of this server may differ.
const SKEW_SECONDS_MAX: i64 = 60;
