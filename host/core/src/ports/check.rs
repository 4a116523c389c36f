//! Reading everything that is stored, as it stands, for a check of it.

use async_trait::async_trait;
use uuid::Uuid;

use crate::{credential::StoredVersion, ports::RepositoryFailure};

/// Everything that is stored, read in batches in the order of sequences. Each batch is one moment of the database, whatever
/// is written meanwhile, and nothing is changed.
#[async_trait]
pub trait CheckRepository: Send + Sync {
    /// What the database engine says of damage to its own file, a line each; empty where nothing is damaged, or where that is
    /// for the tools of the engine.
    ///
    /// # Errors
    /// When the database can't answer.
    async fn damage(&self) -> Result<Vec<String>, RepositoryFailure>;

    /// What the schema has other than this program makes it, a line each: tables, columns, indexes, constraints and triggers.
    ///
    /// # Errors
    /// When the database can't answer.
    async fn schema_differences(&self) -> Result<Vec<String>, RepositoryFailure>;

    /// The last sequence of each table at this moment: what comes after it was written since.
    ///
    /// # Errors
    /// When the database can't answer.
    async fn ends(&self) -> Result<CheckEnds, RepositoryFailure>;

    /// The credentials of a range, each with what its versions say at the same moment.
    ///
    /// # Errors
    /// When the database can't answer.
    async fn credentials(
        &self,
        range: SequenceRange,
    ) -> Result<Vec<CheckedCredential>, RepositoryFailure>;

    /// The versions of a range.
    ///
    /// # Errors
    /// When the database can't answer.
    async fn versions(
        &self,
        range: SequenceRange,
    ) -> Result<Vec<CheckedVersion>, RepositoryFailure>;

    /// The version with this id, if there is one.
    ///
    /// # Errors
    /// When the database can't answer.
    async fn version_by_id(&self, id: Uuid) -> Result<Option<CheckedVersion>, RepositoryFailure>;

    /// The entries of a range of the index of names.
    ///
    /// # Errors
    /// When the database can't answer.
    async fn indexed_names(
        &self,
        range: SequenceRange,
    ) -> Result<Vec<CheckedIndexEntry>, RepositoryFailure>;

    /// The credentials, by their sequences, of which the index of names has an entry of the right size for another name, as
    /// far as [`CheckRepository::credentials`] does not tell; the first of them, where there are many.
    ///
    /// # Errors
    /// When the database can't answer.
    async fn wrongly_indexed(&self) -> Result<Vec<i64>, RepositoryFailure>;

    /// The permissions of a range.
    ///
    /// # Errors
    /// When the database can't answer.
    async fn permissions(
        &self,
        range: SequenceRange,
    ) -> Result<Vec<CheckedPermission>, RepositoryFailure>;
}

/// A part of a table, in the order of its sequences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequenceRange {
    /// It begins after this sequence.
    pub after: i64,
    /// It ends with this sequence.
    pub until: i64,
    /// The most rows.
    pub count_max: u32,
}

/// The last sequence of each table; 0 where there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckEnds {
    /// Of the credentials.
    pub credentials: i64,
    /// Of the versions.
    pub versions: i64,
    /// Of the index of names.
    pub indexed_names: i64,
    /// Of the permissions.
    pub permissions: i64,
}

/// A credential, with what its own columns repeat of its versions, and what those say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedCredential {
    /// Its sequence.
    pub sequence: i64,
    /// Its name.
    pub name: String,
    /// The name in the form in which it is looked up.
    pub name_folded: String,
    /// The name of its type.
    pub credential_type: String,
    /// What it says of its newest version.
    pub newest: PointedVersion,
    /// Its newest version.
    pub newest_found: PointedVersion,
    /// What it says of its newest version that is not transitional.
    pub current: PointedVersion,
    /// Its newest version that is not transitional.
    pub current_found: PointedVersion,
    /// How many of its versions are transitional.
    pub transitional_count: u64,
    /// Whether the index of names has exactly its folded name.
    pub is_indexed: bool,
}

/// What is told of one version of a credential; nothing where there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PointedVersion {
    /// Its sequence.
    pub sequence: Option<i64>,
    /// When it was made, in milliseconds.
    pub created_at: Option<i64>,
    /// When its certificate expires, in milliseconds; nothing of a current version.
    pub expires_at: Option<i64>,
}

/// A version, as far as it can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedVersion {
    /// Its sequence.
    pub sequence: i64,
    /// Its id.
    pub id: Uuid,
    /// The name of its credential; none when that is not there.
    pub name: Option<String>,
    /// All of it.
    pub stored: CheckedRow,
    /// The form in which the name of the one that signed it is looked up.
    pub signed_by_folded: Option<String>,
    /// Whether the key that encrypts it has a record.
    pub has_key_record: bool,
}

/// The columns of a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckedRow {
    /// All can be read.
    Read(Box<StoredVersion>),
    /// This one can't.
    Malformed(&'static str),
}

/// An entry of the index of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckedIndexEntry {
    /// The sequence of the credential that it is about.
    pub sequence: i64,
    /// Whether there is such a credential.
    pub has_credential: bool,
}

/// A permission, as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedPermission {
    /// Its sequence.
    pub sequence: i64,
    /// Its id.
    pub id: Uuid,
    /// What it is about.
    pub path: String,
    /// Whom it lets.
    pub actor: String,
    /// Do what, as a sum.
    pub operations: i64,
}
