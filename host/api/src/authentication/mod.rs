//! Authenticates callers.
//!
//! `authenticate` runs before every route that is not open. It determines the caller's [`Identity`] from a client
//! certificate, which the listener has verified, and from a bearer token, which a [`TokenVerifier`] verifies. Each of them
//! must be valid if it is presented; if both are, the token determines the identity. To add a mechanism, add a module that
//! returns an [`Identity`], and a step in `identify`.

mod bearer;
mod claims;
mod client_certificate;
mod identity;
mod identity_provider;
mod provider_keys;
mod published_keys;
mod signed_token;
#[cfg(test)]
mod test_key;
mod token_rules;
mod token_verifier;
mod trusted_keys;
mod verification_key;

use std::{sync::Arc, time::Duration};

use axum::{
    http::HeaderMap,
    response::{IntoResponse, Response},
};

pub use identity_provider::{
    HttpsIdentityProvider, HttpsIdentityProviderSettings, IdentityProviderRefused,
};
pub use provider_keys::KeyPace;
pub use token_rules::{
    ClaimSettings, GrantTypeSettings, ScopeForm, TokenRules, TokenRulesRefused, WhenAbsent,
};
pub use token_verifier::{StaticKey, TokenVerifier};
pub use verification_key::KeyRefused;

pub(crate) use bearer::bearer_token;
pub(crate) use claims::TokenRefused;
pub(crate) use verification_key::VerificationKey;

use chrono::DateTime;
use keywright_core::{authorization::Caller, response_memory::ResponseReservation};

use crate::{Api, Connection, response::ApiFailure};
use identity::Identity;

/// Authenticates the caller of a request, and records it in the request's span.
///
/// # Errors
/// The response to a caller that is not authenticated.
pub(crate) async fn authenticate(
    api: &Api,
    connection: Option<&Connection>,
    headers: &HeaderMap,
) -> Result<(Caller, Arc<ResponseReservation>), Response> {
    if api.credentials.store.clock.now() < DateTime::UNIX_EPOCH {
        // Neither a token nor a certificate can be verified, and no version has such a time.
        let error = "the server's clock is before 1970; set the clock of its machine";
        tracing::error!("{error}");
        return Err(ApiFailure::unavailable(error, CLOCK_RETRY_AFTER).into_response());
    }
    let identity = identify(api, connection, headers).await?;
    tracing::Span::current().record("actor", identity.actor.as_str());
    let memory = Arc::new(api.response_memory.begin(identity.actor.as_str()));
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
        .map(|certificate| {
            client_certificate::identity(certificate, api.credentials.store.clock.now())
        })
        .transpose()
        .map_err(IntoResponse::into_response)?;
    let bearer = match bearer_token(headers) {
        Ok(token) => verify(api, token).await,
        Err(refused) => Err(refused),
    };
    match (bearer, holder) {
        (Ok(identity), _) => Ok(identity),
        (Err(TokenRefused::Absent), Some(holder)) => Ok(holder),
        (Err(refused), _) => Err(refused.into_response()),
    }
}

async fn verify(api: &Api, token: &str) -> Result<Identity, TokenRefused> {
    match &api.token_verifier {
        Some(verifier) => verifier.verify(token).await,
        None => Err(TokenRefused::NotAccepted),
    }
}

/// The retry delay while the server's clock is wrong.
const CLOCK_RETRY_AFTER: Duration = Duration::from_secs(30);
