//! Key-encryption keys that never leave a key management service.

use async_trait::async_trait;
use zeroize::Zeroizing;

/// A service that encrypts keys with a key-encryption key that never leaves the service.
#[async_trait]
pub trait KeyManagement: Send + Sync {
    /// Encrypts a key. The result is stored; only the service can decrypt it.
    ///
    /// # Errors
    /// If the service is unreachable or fails.
    async fn wrap_key(&self, key: &[u8]) -> Result<Vec<u8>, KeyManagementFailure>;

    /// Decrypts a key. `None` if the service reports that it did not encrypt this key.
    ///
    /// # Errors
    /// If the service is unreachable or fails.
    async fn unwrap_key(
        &self,
        wrapped_key: &[u8],
    ) -> Result<Option<Zeroizing<Vec<u8>>>, KeyManagementFailure>;
}

/// The error of a key management service. `Display` names the service and the cause, and contains no secret.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct KeyManagementFailure(#[from] pub Box<dyn std::error::Error + Send + Sync>);
