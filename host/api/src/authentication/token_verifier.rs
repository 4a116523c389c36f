//! Checking bearer tokens.

use std::sync::Arc;

use jsonwebtoken::DecodingKey;
use keywright_core::{permission::Actor, ports::Clock};

use super::{
    HttpsIdentityProvider, KeyRefused, TokenRefused,
    provider_keys::{Pace, ProviderKeys},
    trusted_keys::{TrustedKey, TrustedKeys, key_id},
};

/// Checks bearer tokens: JWTs that the trusted issuer signed with RS256.
pub struct TokenVerifier {
    keys: KeySource,
    clock: Arc<dyn Clock>,
}

/// A verification key of the configuration.
#[derive(Clone, Copy, Debug)]
pub struct StaticKey<'a> {
    /// The RSA public key, in PEM.
    pub public_key_pem: &'a str,
    /// What the tokens' `iss` must be.
    pub issuer: &'a str,
}

enum KeySource {
    Provider(Arc<ProviderKeys>),
    Static(Arc<TrustedKeys>),
}

impl TokenVerifier {
    /// Checks against one key that the configuration has.
    ///
    /// # Errors
    /// When it is not an RSA public key in PEM.
    pub fn with_static_key(key: &StaticKey<'_>, clock: Arc<dyn Clock>) -> Result<Self, KeyRefused> {
        Ok(Self {
            keys: KeySource::Static(Arc::new(TrustedKeys::of_pem(
                key.public_key_pem,
                key.issuer,
            )?)),
            clock,
        })
    }

    /// Checks against the keys that an identity provider publishes. They are fetched with the first token: a provider
    /// that can't be reached then leaves tokens unchecked, which is 503, and keeps nothing else from working.
    #[must_use]
    pub fn with_identity_provider(provider: HttpsIdentityProvider, clock: Arc<dyn Clock>) -> Self {
        let keys = ProviderKeys::new(Box::new(provider), Pace::default());
        Self {
            keys: KeySource::Provider(keys),
            clock,
        }
    }

    /// Checks against a key that this process has anyway.
    pub(crate) fn with_key(key: DecodingKey, issuer: &str, clock: Arc<dyn Clock>) -> Self {
        let key = TrustedKey { id: None, key };
        Self {
            keys: KeySource::Static(Arc::new(TrustedKeys::new(issuer.to_owned(), vec![key]))),
            clock,
        }
    }

    /// Finds out whose token it is.
    ///
    /// # Errors
    /// Why the token does not let its bearer pass.
    pub(crate) async fn verify(&self, token: &str) -> Result<Actor, TokenRefused> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(TokenRefused::Invalid("it is too long"));
        }
        let now = self.clock.now();
        if let Some(checked) = self.current().and_then(|keys| keys.recall(token)) {
            return checked.actor_at(now);
        }
        let key_id = key_id(token)?;
        let keys = match &self.keys {
            KeySource::Static(keys) => Arc::clone(keys),
            KeySource::Provider(provider) => provider
                .for_token(key_id.as_deref())
                .await
                .ok_or(TokenRefused::Unverifiable)?,
        };
        keys.check(token, key_id.as_deref(), now)?.actor_at(now)
    }

    fn current(&self) -> Option<Arc<TrustedKeys>> {
        match &self.keys {
            KeySource::Provider(provider) => provider.current(),
            KeySource::Static(keys) => Some(Arc::clone(keys)),
        }
    }
}

/// The longest token that is looked at, in bytes.
const TOKEN_BYTES_MAX: usize = 16 * 1024;
