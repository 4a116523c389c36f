//! How much each key encrypts.

use crate::{Failure, encryption_key::EncryptionKeys, ports::KeyStanding};

/// How many versions of credentials are encrypted by which keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyUsage {
    /// By the active key.
    pub active_key: u64,
    /// By all other keys that are configured.
    pub inactive_keys: u64,
    /// By keys that are not configured.
    pub unknown_keys: u64,
}

impl EncryptionKeys {
    /// Counts the versions of all credentials by the keys that encrypt them, by which the end of a key's rotation is seen.
    /// It tells of nobody's credentials, so whoever is known may ask.
    ///
    /// # Errors
    /// When the database can't answer.
    pub async fn usage(&self) -> Result<KeyUsage, Failure> {
        let mut usage = KeyUsage::default();
        for (key_id, versions) in self.repository.versions_by_key().await? {
            // Where it can't be told at present whether a key is configured, it counts as one that is not.
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

    /// How many values the active key may have encrypted: what this and other servers have reserved so far.
    ///
    /// # Errors
    /// When the database can't answer.
    pub async fn active_encryptions(&self) -> Result<u64, Failure> {
        let counted = self.repository.encryptions_by_key().await?.into_iter();
        let mut active =
            counted.filter(|(key_id, _)| self.sealer.standing(*key_id) == KeyStanding::Active);
        Ok(active.next().map_or(0, |(_, encryptions)| encryptions))
    }
}
