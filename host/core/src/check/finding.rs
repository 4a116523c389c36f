//! Findings of a database check.

use std::borrow::Cow;

use strum::IntoStaticStr;
use uuid::Uuid;

use crate::{permission::PathError, ports::CertificateError};

/// An inconsistency in the database. Never contains a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The faulty record.
    pub subject: Subject,
    /// The inconsistency.
    pub fault: Fault,
}

/// The record that a finding is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A credential, by its stored name.
    Credential(String),
    /// The database as a whole.
    Database,
    /// A permission, by its id.
    Permission(Uuid),
    /// A version.
    Version {
        /// The name of its credential; `None` if the credential does not exist.
        name: Option<String>,
        /// Its id.
        id: Uuid,
    },
}

/// An inconsistency. `Display` is a message for operators.
#[derive(Clone, Debug, PartialEq, Eq, IntoStaticStr, thiserror::Error)]
#[strum(serialize_all = "snake_case")]
#[expect(missing_docs, reason = "the messages say what the variants mean")]
pub enum Fault {
    #[error("the actor is malformed")]
    ActorMalformed,
    #[error("column {0} does not match the certificate")]
    CertificateColumnDiffers(&'static str),
    #[error(transparent)]
    CertificateRefused(#[from] CertificateError),
    #[error("the decrypted content is malformed")]
    ContentMalformed,
    #[error("the credential has no versions")]
    CredentialWithoutVersions,
    #[error("the recorded active version does not match the credential's versions")]
    CurrentDiffers,
    #[error("{0}")]
    DatabaseDamaged(String),
    /// A search by input would miss the version, or find it wrongly.
    #[error("the recorded inputs do not match the versions from which the value was derived")]
    InputsDiffer,
    #[error("the recorded CA version {issuer_id} did not sign the certificate: {rule}")]
    IssuerRefused {
        issuer_id: Uuid,
        rule: Cow<'static, str>,
    },
    #[error(
        "encrypted with key {0}, but it is unknown whether this key is configured: a key management plugin does not \
         respond, or the key's record is unreadable"
    )]
    KeyNotCompared(Uuid),
    #[error("encrypted with key {0}, which is not configured")]
    KeyUnknown(Uuid),
    #[error("encrypted with key {0}, which has no record")]
    KeyWithoutRecord(Uuid),
    #[error("the name index has an entry for sequence {0}, but no credential has this sequence")]
    IndexEntryWithoutCredential(i64),
    #[error("the version was encrypted for a credential with another name")]
    NameDiffers,
    #[error("column name_folded is not the name in lower case")]
    NameFoldedDiffers,
    #[error("the name is malformed")]
    NameMalformed,
    /// A search by a part of the name would miss the credential, or find it by a text that its name does not contain.
    #[error("the entry of this name in the name index is missing or wrong")]
    NameNotIndexed,
    #[error("the recorded latest version does not match the credential's versions")]
    NewestDiffers,
    #[error("can't be decrypted: its ciphertext was modified or moved from another record")]
    NotAuthentic,
    #[error("the operations are malformed")]
    OperationsMalformed,
    #[error("the path is malformed: {0}")]
    PathMalformed(PathError),
    #[error("column {0} is malformed")]
    RowMalformed(&'static str),
    #[error("the schema differs from the schema of this release: {0}")]
    SchemaDiffers(String),
    #[error("{0} versions are transitional; only one is allowed")]
    SeveralTransitional(u64),
    #[error("column {0} does not name the credential that signed the certificate")]
    SignerDiffers(&'static str),
    #[error("the version was encrypted for a credential of another type")]
    TypeDiffers,
    #[error("the type is malformed")]
    TypeMalformed,
    #[error(
        "table {table} can't be read after sequence {after}{}: {cause}",
        .until.map_or(String::new(), |until| format!(" up to {until}"))
    )]
    Unreadable {
        table: &'static str,
        after: i64,
        /// The last unreadable sequence; `None` if the rest of the table was skipped.
        until: Option<i64>,
        cause: String,
    },
    #[error("the value does not match the credential's type")]
    ValueMalformed,
    #[error("its credential does not exist")]
    VersionWithoutCredential,
}

impl Fault {
    /// Returns a stable identifier of the kind of fault, for programs: the variant's name in snake case.
    pub fn kind(&self) -> &'static str {
        self.into()
    }
}
