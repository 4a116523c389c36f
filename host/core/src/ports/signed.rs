//! What authorities have signed.

use uuid::Uuid;

use crate::credential::{CredentialName, LookupName, StoredVersion};

/// Which credentials that were signed a query returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignedTypes {
    /// Certificates of which any version was signed, and credentials of other types whose newest version was.
    All,
    /// Certificates of which any version was signed.
    Certificates,
}

/// What was read of all that some credentials had signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadSigned {
    /// The names of those that signed.
    pub signers: Vec<LookupName>,
    /// The types that were asked for.
    pub types: SignedTypes,
    /// The ids of the newest versions that there were, in the order of the answer.
    pub ids: Vec<Uuid>,
}

impl ReadSigned {
    /// What was answered, when it was all that there was.
    #[must_use]
    pub fn new(signers: Vec<LookupName>, types: SignedTypes, answer: &[StoredVersion]) -> Self {
        Self {
            signers,
            types,
            ids: answer.iter().map(|version| version.id).collect(),
        }
    }
}

/// A credential that an authority has signed, as far as permissions matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedName {
    /// Its name, in the casing of its first writer.
    pub name: CredentialName,
    /// Whether its newest version may sign others: only a certificate may.
    pub is_authority: bool,
}
