//! An identity provider for development, inside the server: so that a newcomer and any standard client can log in with
//! nothing else running. It is no identity provider for production: its clients and users are in the configuration, and
//! what was revoked is forgotten when the server ends.
//!
//! `grant.rs` decides who gets a token, `tokens.rs` makes and reads them, `sessions.rs` remembers what was revoked, and
//! `routes.rs` is the HTTP around that.

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

/// The identity provider; a clone is the same one.
#[derive(Clone)]
pub struct DevelopmentIdentity(Arc<Provider>);

/// Whom the identity provider knows, and how it signs.
#[derive(Debug)]
pub struct DevelopmentIdentitySettings {
    /// The RSA private key that signs the tokens, in PEM (PKCS#8 or PKCS#1), of 2048 bits or more.
    pub signing_key_pem: Secret,
    /// The address under which clients reach it, which its tokens name as their issuer.
    pub issuer: String,
    /// The path under which the server mounts it, such as `/identity`; it is the path of the address.
    pub path_prefix: String,
    /// The clients.
    pub clients: Vec<DevelopmentClient>,
    /// The users.
    pub users: Vec<DevelopmentUser>,
}

/// A program that may ask for tokens, for itself or for a user.
#[derive(Clone, Debug)]
pub struct DevelopmentClient {
    /// Its name.
    pub id: String,
    /// Its secret; a program on users' own machines has an empty one, and then should not have
    /// [`Grant::ClientCredentials`].
    pub secret: Secret,
    /// How it may ask.
    pub grants: Vec<Grant>,
    /// What its tokens may be used for.
    pub scopes: Vec<String>,
    /// How long its access tokens are good.
    pub access_token_lifetime: Duration,
    /// How long its users stay logged in.
    pub refresh_token_lifetime: Duration,
}

/// A person who may log in.
#[derive(Clone, Debug)]
pub struct DevelopmentUser {
    /// Identifies the user for good; permissions name it.
    pub id: Uuid,
    /// The name to log in with.
    pub name: String,
    /// The password to log in with.
    pub password: Secret,
    /// What the user may do, through a client that may do it too.
    pub scopes: Vec<String>,
}

/// A way of asking for a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grant {
    /// As the client itself.
    ClientCredentials,
    /// With a user's name and password.
    Password,
    /// With a token that a login gave.
    RefreshToken,
}

/// The identity provider itself.
struct Provider {
    signer: TokenSigner,
    path_prefix: String,
    clients: Vec<DevelopmentClient>,
    users: Vec<DevelopmentUser>,
    revoked: RevokedSessions,
    clock: Arc<dyn Clock>,
}

impl DevelopmentIdentity {
    /// Makes the provider.
    ///
    /// # Errors
    /// When the signing key is no RSA private key of 2048 bits or more.
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

    /// What checks this provider's tokens, without asking it over the network.
    #[must_use]
    pub fn token_verifier(&self, rules: TokenRules, clock: Arc<dyn Clock>) -> TokenVerifier {
        let signer = &self.0.signer;
        let key = signer.verification_key().clone();
        TokenVerifier::with_key(key, signer.issuer(), rules, clock)
    }

    /// The provider's paths, all of them open: who asks for a token has none yet.
    pub(crate) fn routes(&self) -> Vec<Mounted> {
        routes::routes(&self.0, self.0.path_prefix.trim_end_matches('/'))
    }
}
