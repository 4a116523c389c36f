//! The rows of the repository in memory, their views, and direct access of tests to them.

use std::{
    collections::{BTreeMap, HashSet},
    sync::atomic::Ordering,
};

use chrono::DateTime;
use keywright_core::{
    credential::{
        CredentialName, CredentialType, Find, FindNames, FoundCredential, ListedCertificate,
        ListedCredential, ListedVersion, LookupName, PluginIdentity, StoredVersion,
        VersionAttributes,
    },
    ports::{Envelope, NewVersion, RepositoryError, SignedName, SignedTypes, VersionSelection},
};
use serde_json::{Value, json};
use uuid::Uuid;

use super::Memory;
use crate::fakes::facts;

impl Memory {
    /// Returns the number of reads of more than names.
    pub(crate) fn reads(&self) -> usize {
        self.reads.load(Ordering::SeqCst)
    }

    pub(super) fn newest_first(&self) -> Result<Vec<StoredVersion>, RepositoryError> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        self.newest_first_uncounted()
    }

    /// Like [`Memory::newest_first`], but not counted, for reads of only names.
    pub(super) fn newest_first_uncounted(&self) -> Result<Vec<StoredVersion>, RepositoryError> {
        if self.is_unavailable.load(Ordering::SeqCst) {
            return Err(RepositoryError::Unavailable("cause-of-the-outage".into()));
        }
        let versions = self.versions.lock().unwrap();
        Ok(versions.iter().rev().cloned().collect())
    }

    pub(super) fn found(&self, find: &Find) -> Result<Vec<FoundCredential>, RepositoryError> {
        let is_found = |stored: &StoredVersion| {
            let lookup = stored.name.lookup();
            match &find.names {
                FindNames::Below(prefix) => lookup.folded().starts_with(prefix.as_str()),
                FindNames::Containing(part) => lookup.folded().contains(part.as_str()),
            }
        };
        Ok(self
            .newest_first()?
            .into_iter()
            .filter(is_found)
            .map(|stored| FoundCredential {
                name: stored.name,
                version_created_at: stored.created_at,
                expires_at: find.expires_until,
                rotate_at: None,
                is_imported: false,
                is_stale: None,
            })
            .collect())
    }

    pub(super) fn listed_between(
        &self,
        from: &str,
        before: &str,
        count_max: u32,
    ) -> Result<Vec<ListedCredential>, RepositoryError> {
        let mut listed = BTreeMap::new();
        for stored in self.newest_first()? {
            let folded = stored.name.folded();
            if folded.as_str() >= from && folded.as_str() < before {
                listed.entry(folded).or_insert(ListedCredential {
                    due_at: stored.attributes.due_at(),
                    name: stored.name,
                    credential_type: stored.credential_type,
                    version_created_at: stored.created_at,
                });
            }
        }
        Ok(listed.into_values().take(count_max as usize).collect())
    }

    pub(super) fn listed(
        &self,
        types: SignedTypes,
    ) -> Result<Vec<ListedCertificate>, RepositoryError> {
        let mut certificates: Vec<ListedCertificate> = Vec::new();
        for stored in self.newest_first()? {
            let is_of_other_type =
                types == SignedTypes::All && stored.attributes.certificate.is_some();
            if !stored.credential_type.is_certificate() && !is_of_other_type {
                continue;
            }
            let version = ListedVersion {
                id: stored.id,
                is_transitional: stored.attributes.is_transitional,
                is_generated: stored.attributes.is_generated,
                facts: stored.attributes.certificate,
                signed_by: stored.attributes.signed_by,
            };
            let listed = certificates
                .iter_mut()
                .find(|certificate| certificate.id == stored.credential_id);
            match listed {
                Some(certificate) => certificate.versions.push(version),
                None => certificates.push(ListedCertificate {
                    id: stored.credential_id,
                    name: stored.name,
                    credential_type: stored.credential_type,
                    versions: vec![version],
                }),
            }
        }
        Ok(certificates)
    }

    pub(super) fn name_where(
        &self,
        is_match: impl Fn(&StoredVersion) -> bool,
    ) -> Result<Option<CredentialName>, RepositoryError> {
        let mut versions = self.newest_first_uncounted()?;
        versions.retain(is_match);
        Ok(versions.pop().map(|stored| stored.name))
    }
}

/// Returns the newest of these versions per credential, if one of the signers signed it.
pub(super) fn signed_by(
    newest_first: Vec<StoredVersion>,
    signers: &[LookupName],
    count_max: u32,
) -> Vec<StoredVersion> {
    let signers: HashSet<&str> = signers.iter().map(LookupName::folded).collect();
    let mut seen = HashSet::new();
    let is_signed = |stored: &StoredVersion| {
        let signer = stored
            .attributes
            .signed_by
            .as_ref()
            .map(CredentialName::lookup);
        signer.is_some_and(|signer| signers.contains(signer.folded()))
    };
    newest_first
        .into_iter()
        .filter(|stored| seen.insert(stored.name.lookup().folded().to_owned()))
        .filter(is_signed)
        .take(count_max as usize)
        .collect()
}

/// Returns a version as read after it was added.
pub(super) fn stored(version: NewVersion, sequence: i64, credential_id: Uuid) -> StoredVersion {
    StoredVersion {
        id: version.id,
        sequence,
        credential_id,
        name: version.name,
        credential_type: version.credential_type,
        created_at: version.created_at,
        attributes: version.attributes,
        envelope: version.envelope,
    }
}

/// Applies a selection to versions, newest first.
pub(super) fn selected(
    mut versions: Vec<StoredVersion>,
    selection: VersionSelection,
) -> Vec<StoredVersion> {
    match selection {
        VersionSelection::All => {}
        VersionSelection::Current => {
            let (transitional, mut active): (Vec<_>, Vec<_>) = versions
                .into_iter()
                .partition(|version| version.attributes.is_transitional);
            active.truncate(1);
            versions = [active, transitional].concat();
        }
        VersionSelection::Newest(count) => versions.truncate(count as usize),
    }
    versions
}

/// Returns the part of a version that authorization needs.
pub(super) fn signed_name(version: StoredVersion) -> SignedName {
    SignedName {
        name: version.name,
        is_authority: version
            .attributes
            .certificate
            .is_some_and(|facts| facts.is_certificate_authority),
    }
}

pub(super) fn ciphertext_bytes(stored: &StoredVersion) -> usize {
    stored.envelope.ciphertext.len()
}

impl Memory {
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
            .attributes
            .issuer
            .and_then(|issuer| issuer.version_id)
    }

    fn newest(&self, name: &str) -> StoredVersion {
        let mut versions = self.newest_first().unwrap();
        versions.retain(|stored| stored.name.as_str() == name);
        versions.remove(0)
    }

    /// Returns the sealed content of the newest version of a credential; the sealer of these tests does not encrypt.
    pub(crate) fn newest_plaintext(&self, name: &str) -> Value {
        serde_json::from_slice(&self.newest(name).envelope.ciphertext).unwrap()
    }

    /// Stores a certificate as if this CA had signed it.
    pub(crate) fn store_signed(&self, name: &str, signed_by: &str) {
        let fields = json!({"certificate": "c", "private_key": "k"});
        self.store(name, signed_by, &fields, &fields);
    }

    /// Stores a certificate as if it had been generated from these parameters, which its plugin now extends with
    /// `more`.
    pub(crate) fn store_generated(&self, name: &str, parameters: &Value, more: &Value) {
        let mut parameters = parameters.clone();
        parameters["more"] = more.clone();
        let fields = json!({"certificate": "c", "private_key": "k"});
        self.store(name, name, &fields, &parameters);
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
            attributes: VersionAttributes {
                is_generated: Some(true),
                certificate: Some(facts()),
                signed_by: Some(CredentialName::parse(signed_by).unwrap()),
                provenance: Some(replaced_plugin()),
                ..VersionAttributes::default()
            },
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

/// Returns the plugin that generated the stored values. It is not configured any more.
fn replaced_plugin() -> PluginIdentity {
    PluginIdentity {
        name: "replaced".to_owned(),
        version: "0.1.0".to_owned(),
        digest: "0".repeat(64),
        interface_version: "0.1.0".to_owned(),
    }
}
