//! The credentials that CAs have signed.

use uuid::Uuid;

use crate::credential::{CredentialName, LookupName, StoredVersion};

/// The signed credentials that a query returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignedTypes {
    /// Certificates with any signed version, and credentials of other types whose newest version is signed.
    All,
    /// Certificates with any signed version.
    Certificates,
}

/// The result of a query for signed credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadSigned {
    /// The names of the signers.
    pub signers: Vec<LookupName>,
    /// The queried types.
    pub types: SignedTypes,
    /// The ids of the newest versions, in the order of the result.
    pub ids: Vec<Uuid>,
}

impl ReadSigned {
    /// Records a complete result.
    #[must_use]
    pub fn new(signers: Vec<LookupName>, types: SignedTypes, versions: &[StoredVersion]) -> Self {
        Self {
            signers,
            types,
            ids: versions.iter().map(|version| version.id).collect(),
        }
    }
}

/// The fields of a signed credential that matter for permissions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedName {
    /// Its name, in the casing of its first writer.
    pub name: CredentialName,
    /// Whether its newest version is a CA certificate.
    pub is_authority: bool,
}
