//! Who is asking.
//!
//! `authenticate` stands around every route that is not open. It finds the caller's [`Actor`] by one means after the
//! other, of which there is one so far: a bearer token, checked by a [`TokenVerifier`]. A further means is a module
//! beside `bearer.rs` that makes an [`Actor`] out of what it finds, and a step in `identify`.

mod bearer;
mod claims;
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

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    http::HeaderMap,
    middleware::Next,
    response::{IntoResponse, Response},
};

pub use claims::{Actor, TokenIdentity};
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

use crate::Api;

/// Lets only those pass who are known, and says who they are: in the request's extensions and in its span.
pub(crate) async fn authenticate(
    State(api): State<Arc<Api>>,
    mut request: Request,
    next: Next,
) -> Response {
    match identify(&api, request.headers()).await {
        Ok(actor) => {
            tracing::Span::current().record("actor", actor.as_str());
            request.extensions_mut().insert(actor);
            next.run(request).await
        }
        Err(refused) => refused.into_response(),
    }
}

async fn identify(api: &Api, headers: &HeaderMap) -> Result<Actor, TokenRefused> {
    let token = bearer_token(headers)?;
    match &api.token_verifier {
        Some(verifier) => verifier.verify(token).await.map(|identity| identity.actor),
        None => Err(TokenRefused::Invalid("no tokens are accepted here")),
    }
}
