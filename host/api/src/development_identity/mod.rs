//! An identity provider for development, built into the server, so that users and standard clients can log in without
//! further services. It is not suitable for production: its clients and users are in the configuration, and revocations are
//! lost at shutdown.
//!
//! `grant.rs` decides who gets a token, `tokens.rs` creates and parses tokens, `sessions.rs` stores revoked logins, and
//! `routes.rs` contains the HTTP handlers.

mod grant;
mod routes;
mod sessions;
mod tokens;

use std::{sync::Arc, time::Duration};

use keywright_core::{Secret, ports::Clock};
use uuid::Uuid;

use self::{sessions::RevokedSessions, tokens::TokenSigner};
use crate::{
    authentication::{TokenRules, TokenVerifier},
    route::Mounted,
};

pub use tokens::SigningKeyRefused;

/// The identity provider. Clones share its state.
#[derive(Clone)]
pub struct DevelopmentIdentity(Arc<Provider>);

/// The settings of the identity provider.
#[derive(Debug)]
pub struct DevelopmentIdentitySettings {
    /// The RSA private key that signs the tokens, in PEM (PKCS#8 or PKCS#1), of at least 2048 bits.
    pub signing_key_pem: Secret,
    /// The URL at which clients reach the provider, and the issuer in its tokens.
    pub issuer: String,
    /// The path at which the server mounts the provider, such as `/identity`: the path of the URL.
    pub path_prefix: String,
    /// The clients.
    pub clients: Vec<DevelopmentClient>,
    /// The users.
    pub users: Vec<DevelopmentUser>,
}

/// A program that may request tokens, for itself or for a user.
#[derive(Clone, Debug)]
pub struct DevelopmentClient {
    /// Its name.
    pub id: String,
    /// Its secret. Programs on users' own machines have an empty one, and should then not have [`Grant::ClientCredentials`].
    pub secret: Secret,
    /// The grant types it may use.
    pub grants: Vec<Grant>,
    /// The scopes that its tokens may have.
    pub scopes: Vec<String>,
    /// The lifetime of its access tokens.
    pub access_token_lifetime: Duration,
    /// The lifetime of its refresh tokens.
    pub refresh_token_lifetime: Duration,
}

/// A person who may log in.
#[derive(Clone, Debug)]
pub struct DevelopmentUser {
    /// The permanent id of the user, which permissions contain.
    pub id: Uuid,
    /// The name to log in with.
    pub name: String,
    /// The password to log in with.
    pub password: Secret,
    /// The scopes of the user. A token has a scope only if its client has it, too.
    pub scopes: Vec<String>,
}

/// A grant type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grant {
    /// The client's own credentials.
    ClientCredentials,
    /// A user's name and password.
    Password,
    /// The refresh token of a login.
    RefreshToken,
}

/// The state of the identity provider.
struct Provider {
    signer: TokenSigner,
    path_prefix: String,
    clients: Vec<DevelopmentClient>,
    users: Vec<DevelopmentUser>,
    revoked: RevokedSessions,
    clock: Arc<dyn Clock>,
}

impl DevelopmentIdentity {
    /// Creates the provider.
    ///
    /// # Errors
    /// If the signing key is not an RSA private key of at least 2048 bits.
    pub fn new(
        settings: DevelopmentIdentitySettings,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, SigningKeyRefused> {
        Ok(Self(Arc::new(Provider {
            signer: TokenSigner::new(&settings.signing_key_pem, settings.issuer)?,
            path_prefix: settings.path_prefix,
            clients: settings.clients,
            users: settings.users,
            revoked: RevokedSessions::default(),
            clock,
        })))
    }

    /// Returns a verifier of this provider's tokens that needs no network requests.
    #[must_use]
    pub fn token_verifier(&self, rules: TokenRules, clock: Arc<dyn Clock>) -> TokenVerifier {
        let signer = &self.0.signer;
        let key = signer.verification_key().clone();
        TokenVerifier::with_key(key, signer.issuer(), rules, clock)
    }

    /// Returns the provider's routes. All are open, because clients that request a token have none yet.
    pub(crate) fn routes(&self) -> Vec<Mounted> {
        routes::routes(&self.0, self.0.path_prefix.trim_end_matches('/'))
    }
}
