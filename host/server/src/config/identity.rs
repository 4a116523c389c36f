//! The identity provider for development.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;
use uuid::Uuid;

/// The identity provider for development, with its clients and users.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DevelopmentConfig {
    /// The file with the RSA key that signs tokens, PEM (PKCS#8).
    pub(crate) signing_key: PathBuf,
    /// Lifetime of an access token.
    pub(crate) access_token_seconds: u32,
    /// Lifetime of a refresh token.
    pub(crate) refresh_token_seconds: u32,
    /// The programs that may request tokens.
    pub(crate) clients: Vec<DevelopmentClient>,
    /// The users that may log in.
    pub(crate) users: Vec<DevelopmentUser>,
}

/// A client of the development identity provider.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DevelopmentClient {
    /// The client's id.
    pub(crate) id: String,
    /// The client's secret; empty for a program on users' own machines. It protects only a development server.
    pub(crate) secret: String,
}

/// A user of the development identity provider.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DevelopmentUser {
    /// The user's id in tokens.
    pub(crate) id: Uuid,
    /// The name to log in with.
    pub(crate) name: String,
    /// The password to log in with. It protects only a development server.
    pub(crate) password: String,
}

impl std::fmt::Debug for DevelopmentClient {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("DevelopmentClient")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for DevelopmentUser {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("DevelopmentUser")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
