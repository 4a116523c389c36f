//! Reading all records for a check.

mod schema;
pub(crate) mod statements;

use async_trait::async_trait;
use keywright_core::{
    credential::StoredVersion,
    ports::{
        CheckEnds, CheckRepository, CheckedCredential, CheckedIndexEntry, CheckedPermission,
        CheckedRow, CheckedVersion, PointedVersion, RepositoryFailure, SequenceRange,
    },
};
use uuid::Uuid;

use crate::{
    connections::{Connections, Engine},
    row::{Decoded, Row, column, count},
    statement::{Statement, statement},
};

/// All records of a database, for a check.
#[derive(Clone)]
pub struct SqlCheckRepository {
    reader: Connections,
}

impl SqlCheckRepository {
    pub(crate) fn new(reader: Connections) -> Self {
        Self { reader }
    }

    async fn rows<T>(
        &self,
        sql: &'static str,
        range: SequenceRange,
        row: impl Fn(&Row) -> Result<T, RepositoryFailure>,
    ) -> Result<Vec<T>, RepositoryFailure> {
        let rows = self.reader.fetch_all(bind(sql, range)).await?;
        rows.iter().map(row).collect()
    }
}

#[async_trait]
impl CheckRepository for SqlCheckRepository {
    async fn damage(&self) -> Result<Vec<String>, RepositoryFailure> {
        match self.reader.engine() {
            Engine::Postgres => Ok(Vec::new()),
            Engine::Sqlite => sqlite_damage(&self.reader).await,
        }
    }

    async fn schema_differences(&self) -> Result<Vec<String>, RepositoryFailure> {
        match self.reader.engine() {
            Engine::Postgres => schema::postgres_differences(&self.reader).await,
            Engine::Sqlite => schema::sqlite_differences(&self.reader).await,
        }
    }

    async fn ends(&self) -> Result<CheckEnds, RepositoryFailure> {
        let sql = match self.reader.engine() {
            Engine::Postgres => statements::POSTGRES_ENDS,
            Engine::Sqlite => statements::SQLITE_ENDS,
        };
        let row = self.reader.fetch_optional(statement(sql)).await?;
        row.as_ref()
            .map(ends)
            .transpose()
            .map(Option::unwrap_or_default)
    }

    async fn credentials(
        &self,
        range: SequenceRange,
    ) -> Result<Vec<CheckedCredential>, RepositoryFailure> {
        let sql = match self.reader.engine() {
            Engine::Postgres => statements::POSTGRES_CREDENTIALS,
            Engine::Sqlite => statements::SQLITE_CREDENTIALS,
        };
        self.rows(sql, range, credential).await
    }

    async fn versions(
        &self,
        range: SequenceRange,
    ) -> Result<Vec<CheckedVersion>, RepositoryFailure> {
        self.rows(statements::VERSIONS, range, version).await
    }

    async fn version_by_id(&self, id: Uuid) -> Result<Option<CheckedVersion>, RepositoryFailure> {
        let query = statement(statements::VERSION_BY_ID).bind(id);
        let row = self.reader.fetch_optional(query).await?;
        row.as_ref().map(version).transpose()
    }

    async fn indexed_names(
        &self,
        range: SequenceRange,
    ) -> Result<Vec<CheckedIndexEntry>, RepositoryFailure> {
        let sql = match self.reader.engine() {
            Engine::Postgres => statements::POSTGRES_INDEXED_NAMES,
            Engine::Sqlite => statements::SQLITE_INDEXED_NAMES,
        };
        self.rows(sql, range, index_entry).await
    }

    async fn wrongly_indexed(&self) -> Result<Vec<i64>, RepositoryFailure> {
        match self.reader.engine() {
            // `POSTGRES_CREDENTIALS` checks the index with each credential.
            Engine::Postgres => Ok(Vec::new()),
            Engine::Sqlite => {
                let query = statement(statements::SQLITE_WRONG_WORDS).bind(WRONGLY_INDEXED_MAX);
                let rows = self.reader.fetch_all(query).await?;
                let sequence = |row: &Row| column!(row, "credential_name", "sequence");
                rows.iter().map(sequence).collect()
            }
        }
    }

    async fn permissions(
        &self,
        range: SequenceRange,
    ) -> Result<Vec<CheckedPermission>, RepositoryFailure> {
        self.rows(statements::PERMISSIONS, range, permission).await
    }
}

/// Returns damage of the SQLite file: the output of `pragma integrity_check`, and dangling references. A file may be too
/// damaged for one of the checks; its error is then reported as damage, too.
async fn sqlite_damage(reader: &Connections) -> Result<Vec<String>, RepositoryFailure> {
    let mut damage = or_refusal(sqlite_integrity(reader).await)?;
    damage.extend(or_refusal(sqlite_dangling(reader).await)?);
    Ok(damage)
}

/// Returns the lines, or the error as a line.
fn or_refusal(
    found: Result<Vec<String>, RepositoryFailure>,
) -> Result<Vec<String>, RepositoryFailure> {
    match found {
        Err(RepositoryFailure::Query(cause)) => Ok(vec![cause.to_string()]),
        found => found,
    }
}

/// Returns dangling references.
async fn sqlite_dangling(reader: &Connections) -> Result<Vec<String>, RepositoryFailure> {
    let rows = reader.fetch_all(statement(statements::SQLITE_REFERENCES));
    let mut dangling = Vec::new();
    for row in &rows.await? {
        let from: String = column!(row, "pragma", "from")?;
        let to: String = column!(row, "pragma", "to")?;
        let rows = count(column!(row, "pragma", "rows")?);
        dangling.push(format!(
            "rows of {from} that reference a missing row of {to}: {rows}"
        ));
    }
    Ok(dangling)
}

/// Returns the errors that SQLite finds in the structure of its file.
pub(crate) async fn sqlite_integrity(
    reader: &Connections,
) -> Result<Vec<String>, RepositoryFailure> {
    let mut damage = Vec::new();
    let rows = reader.fetch_all(statement(statements::SQLITE_INTEGRITY));
    for row in &rows.await? {
        let line: String = column!(row, "pragma", "integrity_check")?;
        damage.extend(Some(line).filter(|line| line != SOUND));
    }
    Ok(damage)
}

fn bind(sql: &'static str, range: SequenceRange) -> Statement {
    statement(sql)
        .bind(range.after)
        .bind(range.until)
        .bind(i64::from(range.count_max))
}

fn ends(row: &Row) -> Result<CheckEnds, RepositoryFailure> {
    let credentials: Option<i64> = column!(row, "credential", "credentials")?;
    let versions: Option<i64> = column!(row, "credential_version", "versions")?;
    let indexed_names: Option<i64> = column!(row, "credential_name", "indexed_names")?;
    let permissions: Option<i64> = column!(row, "permission", "permissions")?;
    Ok(CheckEnds {
        credentials: credentials.unwrap_or_default(),
        versions: versions.unwrap_or_default(),
        indexed_names: indexed_names.unwrap_or_default(),
        permissions: permissions.unwrap_or_default(),
    })
}

fn credential(row: &Row) -> Result<CheckedCredential, RepositoryFailure> {
    Ok(CheckedCredential {
        sequence: column!(row, "credential", "sequence")?,
        name: column!(row, "credential", "name")?,
        name_folded: column!(row, "credential", "name_folded")?,
        credential_type: column!(row, "credential", "credential_type")?,
        newest: PointedVersion {
            sequence: column!(row, "credential", "newest_sequence")?,
            created_at: column!(row, "credential", "newest_created_at")?,
            expires_at: column!(row, "credential", "newest_expires_at")?,
        },
        newest_found: PointedVersion {
            sequence: column!(row, "credential_version", "newest_sequence_found")?,
            created_at: column!(row, "credential_version", "newest_created_at_found")?,
            expires_at: column!(row, "credential_version", "newest_expires_at_found")?,
        },
        current: PointedVersion {
            sequence: column!(row, "credential", "current_sequence")?,
            created_at: column!(row, "credential", "current_created_at")?,
            expires_at: None,
        },
        current_found: PointedVersion {
            sequence: column!(row, "credential_version", "current_sequence_found")?,
            created_at: column!(row, "credential_version", "current_created_at_found")?,
            expires_at: None,
        },
        transitional_count: count(column!(row, "credential_version", "transitional_count")?),
        is_indexed: column!(row, "credential_name", "is_indexed")?,
    })
}

fn version(row: &Row) -> Result<CheckedVersion, RepositoryFailure> {
    let recorded_key_id: Option<Uuid> = column!(row, "encryption_key", "recorded_key_id")?;
    let stored = match StoredVersion::decode(row) {
        Ok(stored) => CheckedRow::Read(Box::new(stored)),
        Err(RepositoryFailure::Inconsistent(column)) => CheckedRow::Malformed(column),
        Err(failure) => return Err(failure),
    };
    Ok(CheckedVersion {
        sequence: column!(row, "credential_version", "sequence")?,
        id: column!(row, "credential_version", "id")?,
        name: column!(row, "credential", "name")?,
        stored,
        signed_by_folded: column!(row, "credential_version", "signed_by_folded")?,
        has_key_record: recorded_key_id.is_some(),
    })
}

fn index_entry(row: &Row) -> Result<CheckedIndexEntry, RepositoryFailure> {
    Ok(CheckedIndexEntry {
        sequence: column!(row, "credential_name", "sequence")?,
        has_credential: column!(row, "credential_name", "has_credential")?,
    })
}

fn permission(row: &Row) -> Result<CheckedPermission, RepositoryFailure> {
    Ok(CheckedPermission {
        sequence: column!(row, "permission", "sequence")?,
        id: column!(row, "permission", "id")?,
        path: column!(row, "permission", "path")?,
        actor: column!(row, "permission", "actor")?,
        operations: column!(row, "permission", "operations")?,
    })
}

/// The maximum number of wrong entries of the index of names that are reported.
const WRONGLY_INDEXED_MAX: i64 = 100;

/// The output of `pragma integrity_check` without errors.
const SOUND: &str = "ok";
