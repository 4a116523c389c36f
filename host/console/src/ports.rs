//! The settings and the dependencies of the console.

use std::sync::Arc;

use async_trait::async_trait;
use axum::http::{self, StatusCode};
use keywright_core::{
    Secret, UseCaseError,
    credential::Credentials,
    encryption_key::EncryptionKeys,
    permission::Actor,
    permission_management::Permissions,
    ports::{Clock, PluginStates},
};

use crate::session::SessionLimits;

/// The settings of the console.
#[derive(Debug)]
pub struct ConsoleSettings {
    /// The origin at which browsers reach the server: `https`, host and port, without a path.
    pub origin: String,
    /// The id of the identity provider's client.
    pub client_id: String,
    /// The client's secret, if it has one.
    pub client_secret: Option<Secret>,
    /// The scopes to request. They must include `openid`.
    pub scopes: Vec<String>,
    /// The service for which access tokens are requested (RFC 8707), if the provider requires one.
    pub resource: Option<String>,
    /// The limits of sessions.
    pub sessions: SessionLimits,
}

/// The dependencies of the console.
pub struct ConsolePorts {
    /// The use cases of credentials.
    pub credentials: Arc<Credentials>,
    /// The use cases of permissions.
    pub permissions: Permissions,
    /// The use cases of encryption keys.
    pub encryption_keys: EncryptionKeys,
    /// The loaded plugins.
    pub plugins: Arc<dyn PluginStates>,
    /// The identity provider.
    pub provider: Arc<dyn IdentityProvider>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Returns the status and the message of a failure, as in the API.
    pub status_and_message: fn(UseCaseError) -> (StatusCode, String),
}

/// The identity provider, and the verification of its tokens.
#[async_trait]
pub trait IdentityProvider: Send + Sync {
    /// Returns the provider's endpoints.
    async fn endpoints(&self) -> Result<Endpoints, ProviderError>;

    /// Sends a request to the token endpoint. A successful result has a body that is JSON without duplicate keys.
    async fn send(
        &self,
        request: http::Request<Vec<u8>>,
    ) -> Result<http::Response<Vec<u8>>, ProviderError>;

    /// Verifies an access token like the token of a request to the API, and returns its actor.
    async fn actor(&self, access_token: &Secret) -> Result<Actor, ProviderError>;

    /// Verifies an ID token for this client with this nonce (OIDC Core 1.0, section 3.1.3.7).
    async fn check_id_token(
        &self,
        id_token: &Secret,
        client_id: &str,
        nonce: &str,
    ) -> Result<(), ProviderError>;
}

/// The endpoints of an identity provider.
#[derive(Clone, Debug)]
pub struct Endpoints {
    /// The URL of the login page, for browsers.
    pub authorization: String,
    /// The URL for token requests.
    pub token: String,
    /// The https URL of the logout page, for browsers, if the provider has one.
    pub logout: Option<String>,
}

/// A request to the identity provider failed, or one of its tokens was rejected. The message contains no token.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct ProviderError(pub String);
