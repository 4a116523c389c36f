//! Encryption keys: their usage and their rotation.

mod rotate;
mod usage;

use std::sync::Arc;

use crate::ports::{EncryptionKeyRepository, Sealer};

pub use rotate::{RotateKeys, RotatedBatch};
pub use usage::KeyUsage;

/// The use cases of encryption keys.
#[derive(Clone)]
pub struct EncryptionKeys {
    /// The records of the keys.
    pub repository: Arc<dyn EncryptionKeyRepository>,
    /// Knows the configured keys.
    pub sealer: Arc<dyn Sealer>,
}
