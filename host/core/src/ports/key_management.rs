//! Keys that protect keys, and never leave the service that keeps them.

use async_trait::async_trait;
use zeroize::Zeroizing;

/// A service that encrypts keys with a key of its own: a key-encryption key that nobody else ever sees.
#[async_trait]
pub trait KeyManagement: Send + Sync {
    /// Encrypts a key. What comes back is stored, and is nothing without the service.
    ///
    /// # Errors
    /// When the service can't be reached, or does not do what it should.
    async fn wrap_key(&self, key: &[u8]) -> Result<Vec<u8>, KeyManagementFailure>;

    /// Decrypts a key; none when the service says that it was not encrypted by it.
    ///
    /// # Errors
    /// When the service can't be reached, or does not do what it should.
    async fn unwrap_key(
        &self,
        wrapped_key: &[u8],
    ) -> Result<Option<Zeroizing<Vec<u8>>>, KeyManagementFailure>;
}

/// A key management service did not do what was asked of it. It says which one, and why, and holds no secret.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct KeyManagementFailure(#[from] pub Box<dyn std::error::Error + Send + Sync>);
