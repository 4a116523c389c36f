//! The usage of encryption keys.

use crate::{Failure, encryption_key::EncryptionKeys, ports::KeyStanding};

/// The numbers of credential versions by encryption key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyUsage {
    /// The versions encrypted with the active key.
    pub active_key: u64,
    /// The versions encrypted with other configured keys.
    pub inactive_keys: u64,
    /// The versions encrypted with keys that are not configured.
    pub unknown_keys: u64,
}

impl EncryptionKeys {
    /// Counts the versions of all credentials by encryption key. A rotation is complete when an old key encrypts none. The
    /// numbers reveal no credential, so every authenticated caller may read them.
    ///
    /// # Errors
    /// If the query fails.
    pub async fn usage(&self) -> Result<KeyUsage, Failure> {
        let mut usage = KeyUsage::default();
        for (key_id, versions) in self.repository.versions_by_key().await? {
            // A key that can't currently be compared with the configured keys counts as not configured.
            let _ = self.sealer.recognise(key_id).await;
            let counted = match self.sealer.standing(key_id) {
                KeyStanding::Active => &mut usage.active_key,
                KeyStanding::Inactive => &mut usage.inactive_keys,
                KeyStanding::Unknown => &mut usage.unknown_keys,
            };
            *counted = counted.saturating_add(versions);
        }
        Ok(usage)
    }

    /// Returns the number of encryptions that all servers have reserved for the active key so far.
    ///
    /// # Errors
    /// If the query fails.
    pub async fn active_encryptions(&self) -> Result<u64, Failure> {
        let counted = self.repository.encryptions_by_key().await?.into_iter();
        let mut active =
            counted.filter(|(key_id, _)| self.sealer.standing(*key_id) == KeyStanding::Active);
        Ok(active.next().map_or(0, |(_, encryptions)| encryptions))
    }
}
