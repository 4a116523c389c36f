//! The encryption keys of the repository in memory.

use std::collections::HashMap;

use async_trait::async_trait;
use keywright_core::ports::{EncryptionKeyRepository, RepositoryFailure};
use uuid::Uuid;

use super::Memory;

#[async_trait]
impl EncryptionKeyRepository for Memory {
    async fn encryptions_by_key(&self) -> Result<Vec<(Uuid, u64)>, RepositoryFailure> {
        Ok(Vec::new())
    }

    async fn versions_by_key(&self) -> Result<Vec<(Uuid, u64)>, RepositoryFailure> {
        let mut versions: HashMap<Uuid, u64> = HashMap::new();
        for stored in self.newest_first()? {
            *versions.entry(stored.envelope.key_id).or_default() += 1;
        }
        Ok(versions.into_iter().collect())
    }
}
