//! Checking bearer tokens.

use std::sync::Arc;

use keywright_core::ports::Clock;

use super::{
    HttpsIdentityProvider, KeyPace, KeyRefused, TokenRefused, TokenRules, identity::Identity,
    provider_keys::ProviderKeys, signed_token::SignedToken, trusted_keys::TrustedKeys,
    verification_key::VerificationKey,
};

/// Checks bearer tokens: JWTs that the trusted issuer signed with RS256 or ES256.
pub struct TokenVerifier {
    keys: KeySource,
    rules: TokenRules,
    clock: Arc<dyn Clock>,
}

/// A verification key of the configuration.
#[derive(Clone, Copy, Debug)]
pub struct StaticKey<'a> {
    /// The RSA or P-256 public key, in PEM.
    pub public_key_pem: &'a str,
    /// What the tokens' `iss` must be.
    pub issuer: &'a str,
}

enum KeySource {
    Provider(Arc<ProviderKeys>),
    Static(Arc<TrustedKeys>),
}

impl TokenVerifier {
    /// Checks against one key that the configuration has, whatever the tokens call it.
    ///
    /// # Errors
    /// When it is not an RSA public key of 2048 to 8192 bits or a P-256 public key, in PEM.
    pub fn with_static_key(
        key: &StaticKey<'_>,
        rules: TokenRules,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, KeyRefused> {
        let verification_key = VerificationKey::of_pem(key.public_key_pem)?;
        Ok(Self::with_key(verification_key, key.issuer, rules, clock))
    }

    /// Checks against the keys that an identity provider publishes, and begins to fetch them, for which a Tokio runtime is
    /// needed. A provider that can't be reached leaves tokens unchecked until it can, which is 503, and keeps nothing
    /// else from working.
    #[must_use]
    pub fn with_identity_provider(
        provider: HttpsIdentityProvider,
        pace: KeyPace,
        rules: TokenRules,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let keys = ProviderKeys::new(Box::new(provider), pace);
        tokio::spawn(Arc::clone(&keys).prepare());
        Self {
            keys: KeySource::Provider(keys),
            rules,
            clock,
        }
    }

    /// Checks against a key that this process has anyway.
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

    /// Finds out whose token it is.
    ///
    /// # Errors
    /// Why the token does not let its bearer pass.
    pub(super) async fn verify(&self, token: &str) -> Result<Identity, TokenRefused> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(TokenRefused::Invalid("it is too long"));
        }
        let now = self.clock.now();
        if let Some(checked) = self.current().and_then(|keys| keys.recall(token)) {
            return checked.identity_at(now, &self.rules);
        }
        let signed = SignedToken::parse(token)?;
        let keys = match &self.keys {
            KeySource::Static(keys) => Arc::clone(keys),
            KeySource::Provider(provider) => provider
                .for_token(|keys| keys.are_enough_for(&signed))
                .await
                .ok_or(TokenRefused::Unverifiable)?,
        };
        keys.check(token, &signed, &self.rules, now)
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
