//! Verifies bearer tokens.

use std::sync::Arc;

use keywright_core::ports::Clock;

use super::{
    HttpsIdentityProvider, KeyPace, KeyRefused, TokenRefused, TokenRules,
    identity::Identity,
    provider_keys::ProviderKeys,
    signed_token::SignedToken,
    trusted_keys::{TokenDigest, TrustedKeys},
    verification_key::VerificationKey,
};

/// Verifies bearer tokens: JWTs signed by the trusted issuer with RS256 or ES256.
pub struct TokenVerifier {
    keys: KeySource,
    rules: TokenRules,
    clock: Arc<dyn Clock>,
}

/// A configured verification key.
#[derive(Clone, Copy, Debug)]
pub struct StaticKey<'a> {
    /// The RSA or P-256 public key, in PEM.
    pub public_key_pem: &'a str,
    /// The required `iss` of tokens.
    pub issuer: &'a str,
}

enum KeySource {
    Provider(Arc<ProviderKeys>),
    Static(Arc<TrustedKeys>),
}

impl TokenVerifier {
    /// Verifies with one configured key, whatever key id tokens have.
    ///
    /// # Errors
    /// If the key is not an RSA public key of 2048 to 8192 bits or a P-256 public key, in PEM.
    pub fn with_static_key(
        key: &StaticKey<'_>,
        rules: TokenRules,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, KeyRefused> {
        let verification_key = VerificationKey::of_pem(key.public_key_pem)?;
        Ok(Self::with_key(verification_key, key.issuer, rules, clock))
    }

    /// Verifies with the keys that an identity provider publishes, and starts to fetch them, which requires a Tokio runtime.
    /// While the provider is unavailable and there are no keys, requests with tokens get status 503; everything else works.
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

    /// Verifies with a key of this process.
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

    /// Verifies a token and returns its identity.
    ///
    /// # Errors
    /// The reason for rejecting the token.
    pub(super) async fn verify(&self, token: &str) -> Result<Identity, TokenRefused> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(TokenRefused::Invalid("too long"));
        }
        let (now, rules) = (self.clock.now(), &self.rules);
        let digest = TokenDigest::of(token);
        let keys = self.current();
        if let Some(result) = keys.and_then(|keys| keys.recall(&digest, rules, now)) {
            return result;
        }
        let signed = SignedToken::parse(token)?;
        let (keys, is_signed) = match &self.keys {
            KeySource::Static(keys) => (Arc::clone(keys), keys.have_signed(&signed) == Some(true)),
            KeySource::Provider(provider) => provider
                .for_token(|keys| keys.have_signed(&signed))
                .await
                .ok_or(TokenRefused::Unverifiable)?,
        };
        keys.check(digest, &signed, is_signed, rules, now)
    }

    fn current(&self) -> Option<Arc<TrustedKeys>> {
        match &self.keys {
            KeySource::Provider(provider) => provider.current(),
            KeySource::Static(keys) => Some(Arc::clone(keys)),
        }
    }
}

/// Maximum length of a token, in bytes.
const TOKEN_BYTES_MAX: usize = 16 * 1024;
