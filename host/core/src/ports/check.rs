//! Reading all records without validation, for a check of the database.

use std::collections::BTreeMap;

use async_trait::async_trait;
use uuid::Uuid;

use crate::{credential::StoredVersion, ports::RepositoryError};

/// Read-only access to all records, in batches in the order of their sequences. Each batch is one snapshot of the database.
#[async_trait]
pub trait CheckRepository: Send + Sync {
    /// Returns the damage that the database engine reports in its own file or state, one line each. Empty if there is none, or
    /// if only separate tools of the engine can detect damage.
    async fn damage(&self) -> Result<Vec<String>, RepositoryError>;

    /// Returns the differences between the schema of the database and the schema of this release, one line each. Compares
    /// tables, columns, indexes, constraints and triggers.
    async fn schema_differences(&self) -> Result<Vec<String>, RepositoryError>;

    /// Returns the current last sequence of each table.
    async fn ends(&self) -> Result<CheckEnds, RepositoryError>;

    /// Returns the credentials of a range, each with a summary of its versions from the same snapshot.
    async fn credentials(
        &self,
        range: SequenceRange,
    ) -> Result<Vec<CheckedCredential>, RepositoryError>;

    /// Returns the versions of a range.
    async fn versions(&self, range: SequenceRange) -> Result<Vec<CheckedVersion>, RepositoryError>;

    /// Returns the version with this id, or `None`.
    async fn version_by_id(&self, id: Uuid) -> Result<Option<CheckedVersion>, RepositoryError>;

    /// Returns the entries of a range of the name index.
    async fn indexed_names(
        &self,
        range: SequenceRange,
    ) -> Result<Vec<CheckedIndexEntry>, RepositoryError>;

    /// Returns the sequences of credentials whose name index entry has the right size but contains another name.
    /// [`CheckRepository::credentials`] does not detect these entries. If there are many, returns only the first.
    async fn wrongly_indexed(&self) -> Result<Vec<i64>, RepositoryError>;

    /// Returns the permissions of a range.
    async fn permissions(
        &self,
        range: SequenceRange,
    ) -> Result<Vec<CheckedPermission>, RepositoryError>;
}

/// A range of the rows of a table, in the order of their sequences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequenceRange {
    /// The sequence before the range.
    pub after: i64,
    /// The last sequence of the range.
    pub until: i64,
    /// The maximum number of rows.
    pub count_max: u32,
}

/// The last sequence of each table; 0 for an empty table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckEnds {
    /// The last sequence of the credentials.
    pub credentials: i64,
    /// The last sequence of the versions.
    pub versions: i64,
    /// The last sequence of the name index.
    pub indexed_names: i64,
    /// The last sequence of the permissions.
    pub permissions: i64,
}

/// A credential, with its columns that repeat data of its versions, and with the same data read from the versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedCredential {
    /// Its sequence.
    pub sequence: i64,
    /// Its name.
    pub name: String,
    /// The stored lookup form of the name.
    pub name_folded: String,
    /// The name of its type.
    pub credential_type: String,
    /// Its columns about its latest version.
    pub newest: PointedVersion,
    /// The same data, read from its latest version.
    pub newest_found: PointedVersion,
    /// Its columns about its active version, the newest that is not transitional.
    pub current: PointedVersion,
    /// The same data, read from its active version.
    pub current_found: PointedVersion,
    /// The number of its transitional versions.
    pub transitional_count: u64,
    /// Whether the name index contains exactly its folded name.
    pub is_indexed: bool,
}

/// The columns of a credential about one version; empty if there is no such version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PointedVersion {
    /// Its sequence.
    pub sequence: Option<i64>,
    /// The time of its creation, in milliseconds.
    pub created_at: Option<i64>,
    /// The time when its certificate expires, in milliseconds; `None` for the active version.
    pub expires_at: Option<i64>,
}

/// A version, possibly malformed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedVersion {
    /// Its sequence.
    pub sequence: i64,
    /// Its id.
    pub id: Uuid,
    /// The name of its credential; `None` if the credential does not exist.
    pub name: Option<String>,
    /// All columns.
    pub stored: CheckedRow,
    /// The stored lookup form of the signer's name.
    pub signed_by_folded: Option<String>,
    /// The rows about its inputs: their folded names and the ids of their versions. Omits malformed rows.
    pub inputs: BTreeMap<String, Uuid>,
    /// Whether its encryption key has a record.
    pub has_key_record: bool,
}

/// The columns of a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckedRow {
    /// All columns are well formed.
    Read(Box<StoredVersion>),
    /// This column is malformed.
    Malformed(&'static str),
}

/// An entry of the name index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckedIndexEntry {
    /// The sequence of the credential.
    pub sequence: i64,
    /// Whether the credential exists.
    pub has_credential: bool,
}

/// A permission, not parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedPermission {
    /// Its sequence.
    pub sequence: i64,
    /// Its id.
    pub id: Uuid,
    /// Its path.
    pub path: String,
    /// Its actor.
    pub actor: String,
    /// The stored sum of its operations.
    pub operations: i64,
}
