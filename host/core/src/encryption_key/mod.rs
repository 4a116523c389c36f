//! The keys that encrypt what is stored: how much each of them encrypts, and how one takes the place of another.

mod rotate;
mod usage;

use std::sync::Arc;

use crate::ports::{EncryptionKeyRepository, Sealer};

pub use rotate::{RotateKeys, RotatedBatch};
pub use usage::KeyUsage;

/// What can be asked of encryption keys.
#[derive(Clone)]
pub struct EncryptionKeys {
    /// Where their records are kept.
    pub repository: Arc<dyn EncryptionKeyRepository>,
    /// What knows those that are configured.
    pub sealer: Arc<dyn Sealer>,
}
