//! Authenticates callers.
//!
//! `authenticate` runs before every route that is not open. It determines the caller's [`Identity`] from a client
//! certificate, which the listener has verified, and from a bearer token, which a [`TokenVerifier`] verifies. Each of them
//! must be valid if it is presented. If both are presented, the token determines the identity. To add a mechanism, add a
//! module that returns an [`Identity`], and a step in `identify`.

mod identity;
mod keys;
mod provider;
mod token;
mod token_rules;

use std::{sync::Arc, time::Duration};

use axum::{
    http::{HeaderMap, StatusCode, header::AUTHORIZATION},
    response::{IntoResponse, Response},
};
use chrono::DateTime;
use keywright_core::{
    Secret, authorization::Caller, permission::Actor, ports::Clock,
    response_memory::ResponseReservation,
};

pub use keys::VerificationKeyError;
pub use provider::{
    HttpsIdentityProvider, HttpsIdentityProviderSettings, IdentityProviderError, KeyPace,
    LoginEndpoints, ProviderRequestError,
};
pub use token_rules::{
    ClaimSettings, GrantTypeSettings, ScopeForm, TokenRules, TokenRulesError, WhenAbsent,
};

pub(crate) use keys::VerificationKey;
pub(crate) use token::TokenError;

use crate::{Api, Connection, measure::authentication_failed, response::ApiError};
use identity::{Identity, identity_in};
use keys::{TrustedKeys, token_digest};
use provider::ProviderKeys;
use token::SignedToken;

pub(crate) async fn authenticate(
    api: &Api,
    connection: Option<&Connection>,
    headers: &HeaderMap,
) -> Result<(Caller, Arc<ResponseReservation>), Response> {
    if api.credentials.store.clock.now() < DateTime::UNIX_EPOCH {
        // Neither a token nor a certificate can be verified, and versions have no creation times before 1970.
        let error = "the server's clock is before 1970; set the clock of its machine";
        tracing::error!("{error}");
        return Err(ApiError::unavailable(error, CLOCK_RETRY_AFTER).into_response());
    }
    let identity = identify(api, connection, headers).await?;
    let memory = Arc::new(api.response_memory.begin(&identity.actor));
    let caller = Caller::new(identity.actor, identity.authentication);
    Ok((caller.with_response(Arc::clone(&memory)), memory))
}

async fn identify(
    api: &Api,
    connection: Option<&Connection>,
    headers: &HeaderMap,
) -> Result<Identity, Response> {
    let holder = connection
        .and_then(|connection| connection.client_certificate.as_deref())
        .map(|certificate| identity_in(certificate, api.credentials.store.clock.now()))
        .transpose()
        .map_err(IntoResponse::into_response)?;
    let bearer = match (bearer_token(headers), &api.token_verifier) {
        (Ok(token), Some(verifier)) => verifier.verify(token).await,
        (Ok(_), None) => Err(TokenError::NotAccepted),
        (Err(refused), _) => Err(refused),
    };
    match (bearer, holder) {
        (Ok(identity), _) => Ok(identity),
        (Err(TokenError::Absent), Some(holder)) => Ok(holder),
        (Err(refused), _) => Err(refused.into_response()),
    }
}

/// Verifies bearer tokens: JWTs signed by the trusted issuer with RS256 or ES256.
pub struct TokenVerifier {
    keys: KeySource,
    rules: TokenRules,
    clock: Arc<dyn Clock>,
}

/// A configured verification key.
#[derive(Clone, Copy, Debug)]
pub struct StaticKey<'a> {
    /// The RSA or P-256 public key, in PEM.
    pub public_key_pem: &'a str,
    /// The required `iss` of tokens.
    pub issuer: &'a str,
}

enum KeySource {
    Provider(Arc<ProviderKeys>),
    Static(Arc<TrustedKeys>),
}

impl TokenVerifier {
    /// Creates a verifier with one configured key. Key ids in tokens are ignored.
    ///
    /// # Errors
    /// If the key is not an RSA public key of 2048 to 8192 bits or a P-256 public key, in PEM.
    pub fn with_static_key(
        key: &StaticKey<'_>,
        rules: TokenRules,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, VerificationKeyError> {
        let verification_key = VerificationKey::of_pem(key.public_key_pem)?;
        Ok(Self::with_key(verification_key, key.issuer, rules, clock))
    }

    /// Creates a verifier with the keys that an identity provider publishes, and starts to fetch them. Requires a Tokio runtime.
    /// While the provider is unavailable and there are no keys, requests with tokens get status 503; everything else works.
    pub fn with_identity_provider(
        provider: HttpsIdentityProvider,
        pace: KeyPace,
        rules: TokenRules,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let keys = ProviderKeys::new(Box::new(provider), pace);
        tokio::spawn(Arc::clone(&keys).prefetch());
        Self {
            keys: KeySource::Provider(keys),
            rules,
            clock,
        }
    }

    pub(crate) fn with_key(
        key: VerificationKey,
        issuer: &str,
        rules: TokenRules,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            keys: KeySource::Static(Arc::new(TrustedKeys::of_one(key, issuer))),
            rules,
            clock,
        }
    }

    /// Returns the actor of an access token, with the same checks as for bearer tokens of requests.
    pub async fn actor(&self, token: &Secret) -> Result<Actor, String> {
        let verified = self.verify(token.expose()).await;
        let identity = verified.map_err(TokenError::into_reason)?;
        Ok(identity.actor)
    }

    /// Verifies an ID token for this client with this nonce (OIDC Core 1.0, section 3.1.3.7).
    pub async fn check_id_token(
        &self,
        token: &Secret,
        client_id: &str,
        nonce: &str,
    ) -> Result<(), String> {
        let checked = self.checked_id_token(token.expose(), client_id, nonce);
        checked.await.map_err(TokenError::into_reason)
    }

    async fn checked_id_token(
        &self,
        token: &str,
        client_id: &str,
        nonce: &str,
    ) -> Result<(), TokenError> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(TokenError::Invalid("too long"));
        }
        let signed = SignedToken::parse(token)?;
        let (keys, is_signed) = self.signers(&signed).await?;
        if !is_signed {
            return Err(TokenError::Invalid("not signed by a trusted key"));
        }
        let claims = signed.claims()?;
        claims.check_id_token(keys.issuer(), client_id, nonce, self.clock.now())
    }

    /// Returns the keys to verify a token with, and whether one of them has signed it.
    async fn signers(
        &self,
        signed: &SignedToken<'_>,
    ) -> Result<(Arc<TrustedKeys>, bool), TokenError> {
        Ok(match &self.keys {
            KeySource::Static(keys) => (Arc::clone(keys), keys.have_signed(signed) == Some(true)),
            KeySource::Provider(provider) => provider
                .for_token(|keys| keys.have_signed(signed))
                .await
                .ok_or(TokenError::Unverifiable)?,
        })
    }

    async fn verify(&self, token: &str) -> Result<Identity, TokenError> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(TokenError::Invalid("too long"));
        }
        let (now, rules) = (self.clock.now(), &self.rules);
        let digest = token_digest(token);
        let keys = self.current();
        if let Some(result) = keys.and_then(|keys| keys.cached_result(&digest, rules, now)) {
            return result;
        }
        let signed = SignedToken::parse(token)?;
        let (keys, is_signed) = self.signers(&signed).await?;
        keys.check(digest, &signed, is_signed, rules, now)
    }

    fn current(&self) -> Option<Arc<TrustedKeys>> {
        match &self.keys {
            KeySource::Provider(provider) => provider.current(),
            KeySource::Static(keys) => Some(Arc::clone(keys)),
        }
    }
}

/// Returns the token in the `Authorization` header. Credentials of schemes other than `Bearer` count as absent.
pub(crate) fn bearer_token(headers: &HeaderMap) -> Result<&str, TokenError> {
    let mut given = headers.get_all(AUTHORIZATION).iter();
    let Some(header) = given.next() else {
        return Err(TokenError::Absent);
    };
    if given.next().is_some() {
        return Err(TokenError::Invalid("duplicate authorization header"));
    }
    let text = header
        .to_str()
        .map_err(|_| TokenError::Invalid("the authorization header is not text"))?;
    let (scheme, token) = text.split_once(' ').unwrap_or((text, ""));
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(TokenError::Absent);
    }
    Ok(token.trim())
}

impl From<TokenError> for ApiError {
    fn from(refused: TokenError) -> Self {
        let (code, description) = match refused {
            TokenError::Absent => {
                return Self::unauthenticated(
                    StatusCode::UNAUTHORIZED,
                    "access_denied",
                    "the request requires an access token, or a client certificate if the server accepts one",
                    "Bearer",
                );
            }
            TokenError::ScopesMissing(required) => {
                return Self::unauthenticated(
                    StatusCode::FORBIDDEN,
                    "insufficient_scope",
                    "the access token lacks a required scope",
                    format!(r#"Bearer error="insufficient_scope", scope="{required}""#),
                );
            }
            TokenError::Unverifiable => {
                let error = "could not verify the access token: could not fetch the identity provider's keys";
                return Self::unavailable(error, UNVERIFIABLE_RETRY_AFTER);
            }
            TokenError::Expired => ("access_token_expired", "the access token has expired"),
            TokenError::Invalid(_) => (
                "invalid_token",
                "the access token is invalid for this server",
            ),
            TokenError::NotAccepted => (
                "invalid_token",
                "the server does not accept access tokens; use a client certificate without a token",
            ),
        };
        let challenge = r#"Bearer error="invalid_token""#;
        Self::unauthenticated(StatusCode::UNAUTHORIZED, code, description, challenge)
    }
}

impl IntoResponse for TokenError {
    fn into_response(self) -> Response {
        if let Self::Invalid(reason) = self {
            tracing::debug!(reason, "rejected token");
        }
        authentication_failed("token", (&self).into());
        ApiError::from(self).into_response()
    }
}

impl TokenError {
    /// Returns the reason as text. It says more than the response to a request with the token: also why a token is invalid.
    fn into_reason(self) -> String {
        match self {
            Self::Invalid(reason) => reason.to_owned(),
            refused => ApiError::from(refused).into_message(),
        }
    }
}

/// The retry delay while the server's clock is wrong.
const CLOCK_RETRY_AFTER: Duration = Duration::from_secs(30);

/// The retry delay while no keys are available.
const UNVERIFIABLE_RETRY_AFTER: Duration = Duration::from_secs(5);

/// Maximum length of a token, in bytes.
const TOKEN_BYTES_MAX: usize = 16 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_headers_are_rejected() {
        let mut headers = HeaderMap::new();
        headers.append(AUTHORIZATION, "Bearer a.b.c".parse().unwrap());
        assert_eq!(bearer_token(&headers), Ok("a.b.c"));
        headers.append(AUTHORIZATION, "Bearer a.b.c".parse().unwrap());
        let refused = bearer_token(&headers);
        assert!(matches!(refused, Err(TokenError::Invalid(_))));
    }
}
