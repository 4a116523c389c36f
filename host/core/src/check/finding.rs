//! What a check finds.

use std::borrow::Cow;

use uuid::Uuid;

use crate::{permission::PathMalformed, ports::CertificateRefused};

/// One thing that is wrong with what is stored. It names the place, never a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Where.
    pub subject: Subject,
    /// What.
    pub fault: Fault,
}

/// What a finding is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A credential, by its name as it is stored.
    Credential(String),
    /// The database as a whole.
    Database,
    /// A permission, by its id.
    Permission(Uuid),
    /// A version.
    Version {
        /// The name of its credential; none when that is not there.
        name: Option<String>,
        /// Its id.
        id: Uuid,
    },
}

/// What is wrong, in words for an operator.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// An actor of a permission breaks a rule.
    #[error("its actor is malformed")]
    ActorMalformed,
    /// A column repeats something of a certificate that the certificate does not say.
    #[error("its column {0} is not what its certificate says")]
    CertificateColumnDiffers(&'static str),
    /// A member of a certificate's value breaks a rule.
    #[error(transparent)]
    CertificateRefused(#[from] CertificateRefused),
    /// What was decrypted is not what is ever sealed.
    #[error("it was decrypted, but is not what is ever encrypted")]
    ContentMalformed,
    /// A credential has no version.
    #[error("it has no version")]
    CredentialWithoutVersions,
    /// What a credential says of its version in use is not so.
    #[error("what it says of its version in use is not what its versions say")]
    CurrentDiffers,
    /// The database engine says that its file is damaged.
    #[error("the database says: {0}")]
    DatabaseDamaged(String),
    /// The authority's version that is said to have signed did not.
    #[error("the authority's version {issuer_id} did not sign it: {rule}")]
    IssuerRefused {
        /// The version that is said to have signed.
        issuer_id: Uuid,
        /// The rule that is broken.
        rule: Cow<'static, str>,
    },
    /// Whether a configured key has this id could not be told.
    #[error(
        "it is encrypted with the key {0}, of which can't be told at present whether it is configured: a key management plugin \
         does not answer, or the record of the key can't be read"
    )]
    KeyNotCompared(Uuid),
    /// No configured key has this id.
    #[error("it is encrypted with the key {0}, which is not configured")]
    KeyUnknown(Uuid),
    /// The key of a version has no record.
    #[error("the key {0} that encrypts it has no record")]
    KeyWithoutRecord(Uuid),
    /// The index of names has an entry for a credential that is not there.
    #[error("the index of names has an entry for the sequence {0}, which no credential has")]
    IndexEntryWithoutCredential(i64),
    /// A version was sealed for a credential of another name, or of another casing of it.
    #[error("the name of its credential is not the one that it was encrypted for")]
    NameDiffers,
    /// A folded name is not the name with its case folded.
    #[error("its column name_folded is not its name with its case folded")]
    NameFoldedDiffers,
    /// A name breaks a rule.
    #[error("its name is malformed")]
    NameMalformed,
    /// A search by a part of the name would not find it, or find it by what it has not.
    #[error("the index of names has not exactly its name")]
    NameNotIndexed,
    /// What a credential says of its newest version is not so.
    #[error("what it says of its newest version is not what its versions say")]
    NewestDiffers,
    /// A value was changed, or stands where it does not belong.
    #[error("it can't be decrypted: it was changed, or does not belong where it stands")]
    NotAuthentic,
    /// The operations of a permission are none.
    #[error("its operations are malformed")]
    OperationsMalformed,
    /// The path of a permission breaks a rule.
    #[error("its path is malformed: {0}")]
    PathMalformed(PathMalformed),
    /// A column can't be read.
    #[error("its column {0} is malformed")]
    RowMalformed(&'static str),
    /// The schema of the database is not the one that the migrations make.
    #[error("the schema differs from that of this program: {0}")]
    SchemaDiffers(String),
    /// More than one version of a credential is transitional.
    #[error("{0} of its versions are transitional, and one may be")]
    SeveralTransitional(u64),
    /// The name of the one that signed is not what it should be.
    #[error("its column {0} does not name the credential that signed it")]
    SignerDiffers(&'static str),
    /// A version was sealed for a credential of another type.
    #[error("the type of its credential is not the one that it was encrypted for")]
    TypeDiffers,
    /// A type is not the name of one.
    #[error("its type is malformed")]
    TypeMalformed,
    /// A part of a table can't be read.
    #[error(
        "the table {table} can't be read after the sequence {after}{}: {cause}",
        .until.map_or(String::new(), |until| format!(" up to {until}"))
    )]
    Unreadable {
        /// The table.
        table: &'static str,
        /// The last sequence that was read.
        after: i64,
        /// The last sequence that can't be read; none where the rest of the table was given up.
        until: Option<i64>,
        /// What the database says.
        cause: String,
    },
    /// A value is not of the shape of its type.
    #[error("its value is not one of its type")]
    ValueMalformed,
    /// A version belongs to a credential that is not there.
    #[error("it belongs to no credential")]
    VersionWithoutCredential,
}

impl Fault {
    /// The kind of fault, by a word that does not change: for programs.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::ActorMalformed => "actor_malformed",
            Self::CertificateColumnDiffers(_) => "certificate_column_differs",
            Self::CertificateRefused(_) => "certificate_refused",
            Self::ContentMalformed => "content_malformed",
            Self::CredentialWithoutVersions => "credential_without_versions",
            Self::CurrentDiffers => "current_differs",
            Self::DatabaseDamaged(_) => "database_damaged",
            Self::IndexEntryWithoutCredential(_) => "index_entry_without_credential",
            Self::IssuerRefused { .. } => "issuer_refused",
            Self::KeyNotCompared(_) => "key_not_compared",
            Self::KeyUnknown(_) => "key_unknown",
            Self::KeyWithoutRecord(_) => "key_without_record",
            Self::NameDiffers => "name_differs",
            Self::NameFoldedDiffers => "name_folded_differs",
            Self::NameMalformed => "name_malformed",
            Self::NameNotIndexed => "name_not_indexed",
            Self::NewestDiffers => "newest_differs",
            Self::NotAuthentic => "not_authentic",
            Self::OperationsMalformed => "operations_malformed",
            Self::PathMalformed(_) => "path_malformed",
            Self::RowMalformed(_) => "row_malformed",
            Self::SchemaDiffers(_) => "schema_differs",
            Self::SeveralTransitional(_) => "several_transitional",
            Self::SignerDiffers(_) => "signer_differs",
            Self::TypeDiffers => "type_differs",
            Self::TypeMalformed => "type_malformed",
            Self::Unreadable { .. } => "unreadable",
            Self::ValueMalformed => "value_malformed",
            Self::VersionWithoutCredential => "version_without_credential",
        }
    }
}
