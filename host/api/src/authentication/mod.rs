//! Who is asking.
//!
//! `authenticate` stands around every route that is not open. It finds the caller's [`Actor`] by one means after the
//! other, of which there is one so far: a bearer token, checked by a [`TokenVerifier`]. A further means is a module
//! beside `bearer.rs` that makes an [`Actor`] out of what it finds, and a step in `identify`.

mod bearer;
mod claims;
mod identity_provider;
mod provider_keys;
mod token_verifier;
mod trusted_keys;

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    http::HeaderMap,
    middleware::Next,
    response::{IntoResponse, Response},
};

pub use identity_provider::{
    HttpsIdentityProvider, HttpsIdentityProviderSettings, IdentityProviderRefused,
};
pub use token_verifier::{StaticKey, TokenVerifier};
pub use trusted_keys::KeyRefused;

pub(crate) use bearer::bearer_token;
pub(crate) use claims::TokenRefused;

use keywright_core::{
    authorization::{Authentication, Caller},
    permission::Actor,
};

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
            let subject = actor.as_str().to_owned();
            let caller = Caller::new(actor, Authentication::Token { subject });
            request.extensions_mut().insert(Arc::new(caller));
            next.run(request).await
        }
        Err(refused) => refused.into_response(),
    }
}

async fn identify(api: &Api, headers: &HeaderMap) -> Result<Actor, TokenRefused> {
    let token = bearer_token(headers)?;
    match &api.token_verifier {
        Some(verifier) => verifier.verify(token).await,
        None => Err(TokenRefused::Invalid("no tokens are accepted here")),
    }
}
