//! Authenticates callers.
//!
//! `authenticate` runs before every route that is not open. It determines the caller's [`Identity`] from a client
//! certificate, which the listener has verified, and from a bearer token, which a [`TokenVerifier`] verifies. Each of them
//! must be valid if it is presented. If both are presented, the token determines the identity. To add a mechanism, add a
//! module that returns an [`Identity`], and a step in `identify`.

mod keys;
mod provider;
mod token;
mod token_rules;

use std::{sync::Arc, time::Duration};

use axum::{
    http::{HeaderMap, StatusCode, header::AUTHORIZATION},
    response::{IntoResponse, Response},
};
use chrono::{DateTime, Utc};
use keywright_core::{
    Secret,
    authorization::{Authentication, Caller},
    certificate::ClientCertificateFacts,
    permission::Actor,
    ports::Clock,
    response_memory::ResponseReservation,
};
use metrics::{counter, describe_counter};
use strum::IntoStaticStr;
use uuid::Uuid;

pub use keys::VerificationKeyError;
pub use provider::{
    HttpsIdentityProvider, HttpsIdentityProviderSettings, IdentityProviderError, KeyPace,
    LoginEndpoints, ProviderRequestError, https_url,
};
pub use token_rules::{
    ClaimSettings, GrantTypeSettings, ScopeForm, TokenRules, TokenRulesError, WhenAbsent,
};

pub(crate) use keys::VerificationKey;
pub(crate) use token::TokenError;

use crate::{Api, Connection, response::ApiError};
use provider::ProviderKeys;
use token::{Identity, SignedToken, TrustedKeys, token_digest};

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

/// The reason to reject a client certificate, even if the request also has a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
enum ClientCertificateError {
    /// The organizational units contain different identities.
    Ambiguous,
    /// The certificate or a CA in its chain has expired since the connection was opened.
    Expired,
    /// No organizational unit contains an identity.
    NoIdentity,
    /// The certificate is not for client authentication.
    Purpose,
}

/// Returns the identity in a certificate, from its organizational unit of the form `app:<version 4 UUID>`. The listener has
/// verified the certificate's chain, its validity, and that the client has its key. This function checks that the certificate is
/// for client authentication and has not expired since the connection was opened.
fn identity_in(
    certificate: &ClientCertificateFacts,
    now: DateTime<Utc>,
) -> Result<Identity, ClientCertificateError> {
    if !certificate.is_for_client_authentication {
        return Err(ClientCertificateError::Purpose);
    }
    if now.timestamp() > certificate.expires_at.timestamp() {
        return Err(ClientCertificateError::Expired);
    }
    let units = certificate.organization_units.iter();
    let mut identities = units.filter_map(|unit| Some((unit, application_id(unit)?)));
    let (unit, id) = identities
        .next()
        .ok_or(ClientCertificateError::NoIdentity)?;
    if identities.any(|(_, other)| other != id) {
        return Err(ClientCertificateError::Ambiguous);
    }
    Ok(Identity {
        actor: Actor::application(id),
        authentication: Authentication::ClientCertificate {
            subject: unit.clone(),
        },
    })
}

/// Returns the id in an organizational unit of exactly the form `app:<version 4 UUID>` (RFC 9562), in lower case. The variant is
/// not checked, as on the platforms that issue such certificates.
fn application_id(unit: &str) -> Option<Uuid> {
    let text = unit.strip_prefix("app:")?;
    let id = Uuid::try_parse(text).ok()?;
    (id.get_version_num() == 4 && id.to_string() == text).then_some(id)
}

impl IntoResponse for ClientCertificateError {
    fn into_response(self) -> Response {
        tracing::debug!(reason = ?self, "rejected client certificate");
        authentication_failed("client_certificate", self.into());
        ApiError::unidentified(match self {
            Self::Ambiguous => "the client certificate contains more than one identity",
            Self::Expired => {
                "the client certificate or a CA in its chain has expired since the connection was opened"
            }
            Self::NoIdentity => {
                "the client certificate provides no valid identity: one of its organizational units must be app: followed by a \
                 version 4 UUID in lower case"
            }
            Self::Purpose => {
                "the client certificate is not meant for client use: its extended key usage must include client \
                 authentication"
            }
        })
        .into_response()
    }
}

/// Verifies bearer tokens: JWTs signed by the trusted issuer with RS256 or ES256.
pub struct TokenVerifier {
    keys: KeySource,
    rules: TokenRules,
    clock: Arc<dyn Clock>,
}

enum KeySource {
    Provider(Arc<ProviderKeys>),
    Static(Arc<TrustedKeys>),
}

impl TokenVerifier {
    /// Creates a verifier with one configured key, for tokens of this issuer. Key ids in tokens are ignored.
    ///
    /// # Errors
    /// If the key is not an RSA public key of 2048 to 8192 bits or a P-256 public key, in PEM.
    pub fn with_static_key(
        public_key_pem: &str,
        issuer: &str,
        rules: TokenRules,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, VerificationKeyError> {
        let key = VerificationKey::of_pem(public_key_pem)?;
        Ok(Self::with_key(key, issuer, rules, clock))
    }

    /// Creates a verifier with the keys that an identity provider publishes, and keeps them up to date. Requires a Tokio runtime.
    /// While the provider is unavailable and there are no keys, requests with tokens get status 503; everything else works.
    pub fn with_identity_provider(
        provider: HttpsIdentityProvider,
        pace: KeyPace,
        rules: TokenRules,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let keys = ProviderKeys::new(Box::new(provider), pace);
        tokio::spawn(Arc::clone(&keys).keep_fresh());
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
    /// Returns the reason as text. Unlike the response to a request with the token, it contains why a token is invalid.
    fn into_reason(self) -> String {
        match self {
            Self::Invalid(reason) => reason.to_owned(),
            refused => ApiError::from(refused).into_message(),
        }
    }
}

/// Registers the description of the metric of failed authentications.
pub(crate) fn describe_metrics() {
    describe_counter!(
        AUTHENTICATION_FAILURES,
        "Requests that failed authentication, by mechanism and reason."
    );
}

/// Counts a request that failed authentication.
fn authentication_failed(mechanism: &'static str, reason: &'static str) {
    counter!(AUTHENTICATION_FAILURES, "mechanism" => mechanism, "reason" => reason).increment(1);
}

const AUTHENTICATION_FAILURES: &str = "keywright_authentication_failures_total";

/// The retry delay while the server's clock is wrong.
const CLOCK_RETRY_AFTER: Duration = Duration::from_secs(30);

/// The retry delay while no keys are available.
const UNVERIFIABLE_RETRY_AFTER: Duration = Duration::from_secs(5);

/// Maximum length of a token, in bytes.
const TOKEN_BYTES_MAX: usize = 16 * 1024;

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

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

    #[test]
    fn a_certificate_is_valid_through_its_last_second() {
        let unit = "app:0d8c5e9e-0a0f-4f9d-8b1f-2c1f0f1d3a55".to_owned();
        let expires_at = DateTime::from_timestamp(1_800_000_000, 0).unwrap();
        let certificate = ClientCertificateFacts {
            organization_units: vec![unit.clone()],
            is_for_client_authentication: true,
            expires_at,
        };
        for (milliseconds, is_good) in [(-1, true), (0, true), (999, true), (1_000, false)] {
            let now = expires_at + TimeDelta::milliseconds(milliseconds);
            let actor = identity_in(&certificate, now).map(|identity| identity.actor.to_string());
            let expired = Err(ClientCertificateError::Expired);
            let expected = if is_good {
                Ok(format!("mtls-{unit}"))
            } else {
                expired
            };
            assert_eq!(actor, expected, "{milliseconds}");
        }
    }
}
