//! Direct access of tests to the repository in memory.

use chrono::DateTime;
use keywright_core::{
    credential::{CredentialName, CredentialType, StoredVersion},
    ports::Envelope,
};
use serde_json::{Value, json};
use uuid::Uuid;

use super::Memory;
use crate::fakes::facts;

impl Memory {
    /// Returns the id of an existing credential.
    pub(crate) fn credential_id(&self, name: &str) -> Uuid {
        let versions = self.newest_first().unwrap();
        let mut ids = versions
            .iter()
            .filter(|stored| stored.name.as_str() == name)
            .map(|stored| stored.credential_id);
        ids.next().unwrap()
    }

    /// Returns the id of the newest version of a credential.
    pub(crate) fn newest_id(&self, name: &str) -> Uuid {
        self.newest(name).id
    }

    /// Returns the version that signed the newest version of a credential.
    pub(crate) fn newest_issuer(&self, name: &str) -> Option<Uuid> {
        self.newest(name)
            .issuer
            .and_then(|issuer| issuer.version_id)
    }

    fn newest(&self, name: &str) -> StoredVersion {
        let mut versions = self.newest_first().unwrap();
        versions.retain(|stored| stored.name.as_str() == name);
        versions.remove(0)
    }

    /// Returns the sealed newest version of a credential; nothing is encrypted here.
    pub(crate) fn newest_plaintext(&self, name: &str) -> Value {
        serde_json::from_slice(&self.newest(name).envelope.ciphertext).unwrap()
    }

    /// Stores a certificate as if this CA had signed it.
    pub(crate) fn store_signed(&self, name: &str, signed_by: &str) {
        let members = json!({"certificate": "c", "private_key": "k"});
        self.store(name, signed_by, &members, &members);
    }

    /// Stores a certificate as if it had been generated from these parameters, which its plugin now extends with
    /// `more`.
    pub(crate) fn store_generated(&self, name: &str, parameters: &Value, more: &Value) {
        let mut parameters = parameters.clone();
        parameters["more"] = more.clone();
        let members = json!({"certificate": "c", "private_key": "k"});
        self.store(name, name, &members, &parameters);
    }

    fn store(&self, name: &str, signed_by: &str, value: &Value, parameters: &Value) {
        let mut versions = self.versions.lock().unwrap();
        let content = json!({"value": value, "parameters": parameters});
        let sequence = i64::try_from(versions.len()).unwrap();
        versions.push(StoredVersion {
            id: Uuid::new_v4(),
            sequence,
            credential_id: Uuid::new_v4(),
            name: CredentialName::parse(name).unwrap(),
            credential_type: CredentialType::parse("certificate").unwrap(),
            created_at: DateTime::UNIX_EPOCH,
            is_transitional: false,
            is_generated: Some(true),
            certificate: Some(facts()),
            signed_by: Some(CredentialName::parse(signed_by).unwrap()),
            issuer: None,
            provenance: None,
            envelope: Envelope {
                key_id: Uuid::nil(),
                nonce: Vec::new(),
                ciphertext: content.to_string().into_bytes(),
            },
        });
    }

    /// Returns all stored versions.
    pub(crate) fn everything(&self) -> Vec<StoredVersion> {
        self.versions.lock().unwrap().clone()
    }

    /// Returns the number of versions.
    pub(crate) fn count(&self) -> usize {
        self.versions.lock().unwrap().len()
    }
}
