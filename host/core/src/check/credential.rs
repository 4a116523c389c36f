//! Checking a credential's own columns.

use super::Fault;
use crate::{
    credential::{CredentialName, CredentialType, LookupName},
    ports::CheckedCredential,
};

/// Returns all faults of a credential.
pub(super) fn faults(credential: &CheckedCredential) -> Vec<Fault> {
    let is_type = |parsed: CredentialType| parsed.as_str() == credential.credential_type.as_str();
    let rules = [
        (
            CredentialName::parse(&credential.name)
                .is_ok_and(|name| name.as_str() == credential.name),
            Fault::NameMalformed,
        ),
        (
            LookupName::new(&credential.name).folded() == credential.name_folded,
            Fault::NameFoldedDiffers,
        ),
        (
            CredentialType::parse(&credential.credential_type).is_ok_and(is_type),
            Fault::TypeMalformed,
        ),
        (credential.is_indexed, Fault::NameNotIndexed),
        (
            credential.newest_found.sequence.is_some(),
            Fault::CredentialWithoutVersions,
        ),
        (
            credential.newest == credential.newest_found,
            Fault::NewestDiffers,
        ),
        (
            credential.current == credential.current_found,
            Fault::CurrentDiffers,
        ),
        (
            credential.transitional_count <= 1,
            Fault::SeveralTransitional(credential.transitional_count),
        ),
    ];
    let broken = rules.into_iter().filter(|(holds, _)| !holds);
    broken.map(|(_, fault)| fault).collect()
}
