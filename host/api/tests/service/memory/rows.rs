//! The rows of the repository in memory, and their views.

use std::{collections::HashSet, sync::atomic::Ordering};

use keywright_core::{
    credential::{
        CredentialName, Find, FindNames, FoundCredential, ListedCertificate, ListedVersion,
        LookupName, StoredVersion,
    },
    ports::{NewVersion, RepositoryFailure, SignedName, VersionSelection},
};
use uuid::Uuid;

use super::Memory;

impl Memory {
    /// Returns the number of reads of more than names.
    pub(crate) fn reads(&self) -> usize {
        self.reads.load(Ordering::SeqCst)
    }

    pub(super) fn newest_first(&self) -> Result<Vec<StoredVersion>, RepositoryFailure> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        self.answering()
    }

    /// As [`Memory::newest_first`], for reading only names.
    pub(super) fn answering(&self) -> Result<Vec<StoredVersion>, RepositoryFailure> {
        if self.is_away.load(Ordering::SeqCst) {
            return Err(RepositoryFailure::Unavailable("cause-of-the-outage".into()));
        }
        let versions = self.versions.lock().unwrap();
        Ok(versions.iter().rev().cloned().collect())
    }

    pub(super) fn found(&self, find: &Find) -> Result<Vec<FoundCredential>, RepositoryFailure> {
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
            })
            .collect())
    }

    pub(super) fn listed(&self) -> Result<Vec<ListedCertificate>, RepositoryFailure> {
        let mut certificates: Vec<ListedCertificate> = Vec::new();
        for stored in self.newest_first()? {
            if !stored.credential_type.is_certificate() {
                continue;
            }
            let version = ListedVersion {
                id: stored.id,
                is_transitional: stored.is_transitional,
                is_generated: stored.is_generated,
                facts: stored.certificate,
                signed_by: stored.signed_by,
            };
            let listed = certificates
                .iter_mut()
                .find(|certificate| certificate.id == stored.credential_id);
            match listed {
                Some(certificate) => certificate.versions.push(version),
                None => certificates.push(ListedCertificate {
                    id: stored.credential_id,
                    name: stored.name,
                    versions: vec![version],
                }),
            }
        }
        Ok(certificates)
    }

    pub(super) fn name_where(
        &self,
        is_it: impl Fn(&StoredVersion) -> bool,
    ) -> Result<Option<CredentialName>, RepositoryFailure> {
        let mut versions = self.answering()?;
        versions.retain(is_it);
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
        let signer = stored.signed_by.as_ref().map(CredentialName::lookup);
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
        is_transitional: version.is_transitional,
        is_generated: version.is_generated,
        certificate: version.certificate,
        signed_by: version.signed_by,
        issuer: version.issuer,
        provenance: version.provenance,
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
            let (transitional, mut in_use): (Vec<_>, Vec<_>) = versions
                .into_iter()
                .partition(|version| version.is_transitional);
            in_use.truncate(1);
            versions = [in_use, transitional].concat();
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
            .certificate
            .is_some_and(|facts| facts.is_certificate_authority),
    }
}

pub(super) fn ciphertext_bytes(stored: &StoredVersion) -> usize {
    stored.envelope.ciphertext.len()
}
