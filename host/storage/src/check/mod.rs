//! Reading all records for a check.

mod schema;

use std::collections::BTreeMap;

use async_trait::async_trait;
use keywright_core::{
    credential::{NAME_CHARACTERS_MAX, StoredVersion},
    ports::{
        CheckEnds, CheckRepository, CheckedCredential, CheckedIndexEntry, CheckedPermission,
        CheckedRow, CheckedVersion, PointedVersion, RepositoryError, SequenceRange,
    },
};
use uuid::Uuid;

use crate::{
    Database,
    connections::{Connections, Engine},
    statement::{Decoded, Row, Statement, column, count, statement},
};

impl Database {
    async fn rows_to_check<T>(
        &self,
        sql: &'static str,
        range: SequenceRange,
        row: impl Fn(&Row) -> Result<T, RepositoryError>,
    ) -> Result<Vec<T>, RepositoryError> {
        let rows = self.reader.fetch_all(bind(sql, range)).await?;
        rows.iter().map(row).collect()
    }
}

#[async_trait]
impl CheckRepository for Database {
    async fn damage(&self) -> Result<Vec<String>, RepositoryError> {
        let mut damage = match self.reader.engine() {
            Engine::Postgres => postgres_damage(&self.reader).await,
            Engine::Sqlite => sqlite_damage(&self.reader).await,
        }?;
        damage.extend(or_error_line(not_checked(&self.reader).await)?);
        Ok(damage)
    }

    async fn schema_differences(&self) -> Result<Vec<String>, RepositoryError> {
        match self.reader.engine() {
            Engine::Postgres => schema::postgres_differences(&self.reader).await,
            Engine::Sqlite => schema::sqlite_differences(&self.reader).await,
        }
    }

    async fn ends(&self) -> Result<CheckEnds, RepositoryError> {
        let sql = self
            .reader
            .engine()
            .choose(statements::POSTGRES_ENDS, statements::SQLITE_ENDS);
        let row = self.reader.fetch_optional(statement(sql)).await?;
        row.as_ref().map_or_else(|| Ok(CheckEnds::default()), ends)
    }

    async fn credentials(
        &self,
        range: SequenceRange,
    ) -> Result<Vec<CheckedCredential>, RepositoryError> {
        let sql = self.reader.engine().choose(
            statements::POSTGRES_CREDENTIALS,
            statements::SQLITE_CREDENTIALS,
        );
        self.rows_to_check(sql, range, credential).await
    }

    async fn versions(&self, range: SequenceRange) -> Result<Vec<CheckedVersion>, RepositoryError> {
        let sql = self
            .reader
            .engine()
            .choose(statements::POSTGRES_VERSIONS, statements::SQLITE_VERSIONS);
        self.rows_to_check(sql, range, version).await
    }

    async fn version_by_id(&self, id: Uuid) -> Result<Option<CheckedVersion>, RepositoryError> {
        let sql = self.reader.engine().choose(
            statements::POSTGRES_VERSION_BY_ID,
            statements::SQLITE_VERSION_BY_ID,
        );
        let query = statement(sql).bind(id);
        let row = self.reader.fetch_optional(query).await?;
        row.as_ref().map(version).transpose()
    }

    async fn indexed_names(
        &self,
        range: SequenceRange,
    ) -> Result<Vec<CheckedIndexEntry>, RepositoryError> {
        let sql = self.reader.engine().choose(
            statements::POSTGRES_INDEXED_NAMES,
            statements::SQLITE_INDEXED_NAMES,
        );
        self.rows_to_check(sql, range, index_entry).await
    }

    async fn wrongly_indexed(&self) -> Result<Vec<i64>, RepositoryError> {
        match self.reader.engine() {
            // `POSTGRES_CREDENTIALS` checks the index with each credential.
            Engine::Postgres => Ok(Vec::new()),
            Engine::Sqlite => {
                let query = statement(statements::SQLITE_WRONG_WORDS)
                    .bind(WRONGLY_INDEXED_MAX)
                    .bind(i64::try_from(NAME_CHARACTERS_MAX).unwrap_or(i64::MAX));
                let rows = self.reader.fetch_all(query).await?;
                let sequence = |row: &Row| column!(row, "credential_name", "sequence");
                rows.iter().map(sequence).collect()
            }
        }
    }

    async fn permissions(
        &self,
        range: SequenceRange,
    ) -> Result<Vec<CheckedPermission>, RepositoryError> {
        self.rows_to_check(statements::PERMISSIONS, range, permission)
            .await
    }
}

/// Returns the tables whose sequences are behind their rows, as after logical replication, which does not copy sequences.
async fn postgres_damage(reader: &Connections) -> Result<Vec<String>, RepositoryError> {
    let behind = statement(statements::POSTGRES_SEQUENCES_BEHIND);
    let rows = reader.fetch_all(behind).await?;
    let line = |row: &Row| {
        let table: String = column!(row, "pg_catalog", "name")?;
        Ok(format!(
            "the sequence of the table {table} is behind its rows, so writes fail; advance it with setval"
        ))
    };
    rows.iter().map(line).collect()
}

/// Returns damage of the SQLite file: the output of `pragma integrity_check`, and dangling references. A file may be too
/// damaged for one of the checks; its error is then reported as damage, too.
async fn sqlite_damage(reader: &Connections) -> Result<Vec<String>, RepositoryError> {
    let mut damage = or_error_line(sqlite_integrity(reader).await)?;
    damage.extend(or_error_line(sqlite_dangling(reader).await)?);
    Ok(damage)
}

/// Counts the rows that no range of a check contains: sequences begin at 1.
async fn not_checked(reader: &Connections) -> Result<Vec<String>, RepositoryError> {
    let rows = reader.fetch_all(statement(statements::NOT_CHECKED)).await?;
    let line = |row: &Row| {
        let table: String = column!(row, "pg_catalog", "name")?;
        let rows = count(column!(row, "pg_catalog", "rows")?);
        Ok(format!(
            "rows of {table} with a sequence below 1, which are not checked: {rows}"
        ))
    };
    rows.iter().map(line).collect()
}

fn or_error_line(
    found: Result<Vec<String>, RepositoryError>,
) -> Result<Vec<String>, RepositoryError> {
    match found {
        Err(RepositoryError::Query(cause)) => Ok(vec![cause.to_string()]),
        found => found,
    }
}

async fn sqlite_dangling(reader: &Connections) -> Result<Vec<String>, RepositoryError> {
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
pub(crate) async fn sqlite_integrity(reader: &Connections) -> Result<Vec<String>, RepositoryError> {
    let mut damage = Vec::new();
    let rows = reader.fetch_all(statement(statements::SQLITE_INTEGRITY));
    for row in &rows.await? {
        let line: String = column!(row, "pragma", "integrity_check")?;
        damage.extend(Some(line).filter(|line| line != INTEGRITY_OK));
    }
    Ok(damage)
}

fn bind(sql: &'static str, range: SequenceRange) -> Statement {
    statement(sql)
        .bind(range.after)
        .bind(range.until)
        .bind(i64::from(range.count_max))
}

fn ends(row: &Row) -> Result<CheckEnds, RepositoryError> {
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

fn credential(row: &Row) -> Result<CheckedCredential, RepositoryError> {
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

fn version(row: &Row) -> Result<CheckedVersion, RepositoryError> {
    let recorded_key_id: Option<Uuid> = column!(row, "encryption_key", "recorded_key_id")?;
    let stored = match StoredVersion::decode(row) {
        Ok(stored) => CheckedRow::Read(Box::new(stored)),
        Err(RepositoryError::Inconsistent(column)) => CheckedRow::Malformed(column),
        Err(failure) => return Err(failure),
    };
    Ok(CheckedVersion {
        sequence: column!(row, "credential_version", "sequence")?,
        id: column!(row, "credential_version", "id")?,
        name: column!(row, "credential", "name")?,
        stored,
        signed_by_folded: column!(row, "credential_version", "signed_by_folded")?,
        inputs: inputs(column!(row, "credential_version_input", "inputs")?),
        has_key_record: recorded_key_id.is_some(),
    })
}

/// Parses the names and ids of inputs. No name contains a space or a comma.
fn inputs(text: Option<String>) -> BTreeMap<String, Uuid> {
    let text = text.unwrap_or_default();
    let inputs = text.split(',').filter_map(|input| {
        let (name, id) = input.split_once(' ')?;
        Some((name.to_owned(), Uuid::parse_str(id).ok()?))
    });
    inputs.collect()
}

fn index_entry(row: &Row) -> Result<CheckedIndexEntry, RepositoryError> {
    Ok(CheckedIndexEntry {
        sequence: column!(row, "credential_name", "sequence")?,
        has_credential: column!(row, "credential_name", "has_credential")?,
    })
}

fn permission(row: &Row) -> Result<CheckedPermission, RepositoryError> {
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
const INTEGRITY_OK: &str = "ok";

pub(crate) mod statements {
    //! The SQL of a check. Each statement reads a range of one table by sequence, together with the values to compare it with, so
    //! that all of them are from one snapshot. Subqueries look up those values for each row, so that no plan reads another table
    //! completely.

    use crate::credential::row::{due_at, version_columns};

    /// A credential, with the corresponding values of its versions. Its sequence is a range of one value, as in `newest_first!`.
    /// The query of the index of names depends on the engine.
    macro_rules! select_credentials {
        ($is_indexed:expr) => {
            concat!(
                "select c.sequence, c.name, c.name_folded, c.credential_type,
                    c.newest_sequence, c.newest_created_at, c.newest_expires_at, c.current_sequence, c.current_created_at,
                    (select v.sequence from credential_version v
                        where v.credential_sequence between c.sequence and c.sequence
                        order by v.credential_sequence desc, v.sequence desc limit 1) as newest_sequence_found,
                    (select v.created_at from credential_version v
                        where v.credential_sequence between c.sequence and c.sequence
                        order by v.credential_sequence desc, v.sequence desc limit 1) as newest_created_at_found,
                    (select ",
                due_at!(),
                " from credential_version v
                        where v.credential_sequence between c.sequence and c.sequence
                        order by v.credential_sequence desc, v.sequence desc limit 1) as newest_expires_at_found,
                    (select v.sequence from credential_version v
                        where v.credential_sequence between c.sequence and c.sequence and not v.is_transitional
                        order by v.credential_sequence desc, v.sequence desc limit 1) as current_sequence_found,
                    (select v.created_at from credential_version v
                        where v.credential_sequence between c.sequence and c.sequence and not v.is_transitional
                        order by v.credential_sequence desc, v.sequence desc limit 1) as current_created_at_found,
                    (select count(*) from credential_version v
                        where v.credential_sequence = c.sequence and v.is_transitional) as transitional_count, ",
                $is_indexed,
                " as is_indexed
                from credential c where c.sequence > $1 and c.sequence <= $2 order by c.sequence limit $3"
            )
        };
    }

    /// PostgreSQL: the index has exactly the parts of the name.
    pub(crate) const POSTGRES_CREDENTIALS: &str = select_credentials!(
        "coalesce((
            select n.parts @> e.parts and n.parts <@ e.parts
            from credential_name n, (
                select array_agg(substr(c.name_folded, first_character, characters)) as parts
                from generate_series(1, length(c.name_folded)) as first_character, generate_series(1, 3) as characters
                where first_character + characters <= length(c.name_folded) + 1
            ) e
            where n.credential_sequence = c.sequence
        ), false)"
    );

    /// SQLite: the index has a row with as many words as the name has characters. The number has a variable length: seven bits per
    /// byte, and the eighth bit if another byte follows. [`SQLITE_WRONG_WORDS`] compares the words themselves: the index is not
    /// organized by rows, so querying a single row costs as much as reading all of it.
    pub(crate) const SQLITE_CREDENTIALS: &str = select_credentials!(
        "(select hex(d.sz) from credential_name_docsize d where d.id = c.sequence)
        is case when length(c.name_folded) < 128
            then printf('%02X', length(c.name_folded))
            else printf('%02X%02X', 128 + length(c.name_folded) / 128, length(c.name_folded) % 128)
        end"
    );

    /// SQLite: the first rows of the index with a word that the credential's name does not have at that position. Reads the whole
    /// index on purpose. Reads a name for each of its words, so malformed names that are too long are not compared.
    pub(crate) const SQLITE_WRONG_WORDS: &str = "
        select distinct t.doc as sequence
        from credential_name_trigram t join credential c on c.sequence = t.doc
        where case when octet_length(c.name_folded) <= $2
            then substr(c.name_folded || char(1, 1), t.offset + 1, 3) is not t.term
        end
        limit $1";

    /// Selects the columns that `row::stored_version_from` decodes, and the names and ids of the inputs. The function that joins
    /// texts and the text of an id depend on the engine.
    macro_rules! select_versions {
        ($join:literal, $id:literal, $($rest:literal),+) => {
            concat!(
                "select v.id, v.sequence,
                    (select c.id from credential c where c.sequence = v.credential_sequence) as credential_id,
                    (select c.name from credential c where c.sequence = v.credential_sequence) as name,
                    (select c.credential_type from credential c where c.sequence = v.credential_sequence) as credential_type, ",
                version_columns!(),
                ", v.signed_by_folded,
                    (select k.id from encryption_key k where k.id = v.encryption_key_id) as recorded_key_id,
                    (select ",
                $join,
                "(d.input_name_folded || ' ' || ",
                $id,
                ", ',') from credential_version_input d where d.version_sequence = v.sequence) as inputs
                from credential_version v where ",
                $($rest),+
            )
        };
    }

    pub(crate) const POSTGRES_VERSIONS: &str = select_versions!(
        "string_agg",
        "d.input_version_id",
        "v.sequence > $1 and v.sequence <= $2 order by v.sequence limit $3"
    );

    pub(crate) const SQLITE_VERSIONS: &str = select_versions!(
        "group_concat",
        "hex(d.input_version_id)",
        "v.sequence > $1 and v.sequence <= $2 order by v.sequence limit $3"
    );

    pub(crate) const POSTGRES_VERSION_BY_ID: &str =
        select_versions!("string_agg", "d.input_version_id", "v.id = $1");

    pub(crate) const SQLITE_VERSION_BY_ID: &str =
        select_versions!("group_concat", "hex(d.input_version_id)", "v.id = $1");

    pub(crate) const POSTGRES_INDEXED_NAMES: &str = "
        select n.credential_sequence as sequence,
            (select c.sequence from credential c where c.sequence = n.credential_sequence) is not null as has_credential
        from credential_name n where n.credential_sequence > $1 and n.credential_sequence <= $2
        order by n.credential_sequence limit $3";

    /// SQLite: listing the rows of the index itself would read all words. This table of the index has one row for each name.
    pub(crate) const SQLITE_INDEXED_NAMES: &str = "
        select n.id as sequence, (select c.sequence from credential c where c.sequence = n.id) is not null as has_credential
        from credential_name_docsize n where n.id > $1 and n.id <= $2 order by n.id limit $3";

    pub(crate) const PERMISSIONS: &str = "
        select p.sequence, p.id, p.path, p.actor, p.operations from permission p
        where p.sequence > $1 and p.sequence <= $2 order by p.sequence limit $3";

    pub(crate) const POSTGRES_ENDS: &str = "
        select (select max(sequence) from credential) as credentials,
            (select max(sequence) from credential_version) as versions,
            (select max(credential_sequence) from credential_name) as indexed_names,
            (select max(sequence) from permission) as permissions";

    pub(crate) const SQLITE_ENDS: &str = "
        select (select max(sequence) from credential) as credentials,
            (select max(sequence) from credential_version) as versions,
            (select max(id) from credential_name_docsize) as indexed_names,
            (select max(sequence) from permission) as permissions";

    /// PostgreSQL: the tables whose next row would get a sequence that is not greater than the sequences of all rows.
    pub(crate) const POSTGRES_SEQUENCES_BEHIND: &str = "
        select t.name from (
            select 'credential' as name, max(sequence) as last from credential
            union all select 'credential_version', max(sequence) from credential_version
            union all select 'permission', max(sequence) from permission
        ) t cross join lateral (select pg_get_serial_sequence(t.name, 'sequence') as name) s
        where has_sequence_privilege(s.name, 'select') and t.last > coalesce(pg_sequence_last_value(s.name::regclass), 0)";

    pub(crate) const NOT_CHECKED: &str = "
        select s.name, s.rows from (
            select 'credential' as name, count(*) as rows from credential where sequence < 1
            union all select 'credential_version', count(*) from credential_version where sequence < 1
            union all select 'permission', count(*) from permission where sequence < 1
        ) s where s.rows > 0";

    /// SQLite: every page, index and column constraint, and the structure of the index of names. Reads everything on purpose.
    pub(crate) const SQLITE_INTEGRITY: &str = "pragma integrity_check";

    /// SQLite: rows with dangling references, by their table and the referenced table. Reads everything on purpose.
    pub(crate) const SQLITE_REFERENCES: &str = "
        select \"table\" as \"from\", parent as \"to\", count(*) as rows from pragma_foreign_key_check group by 1, 2";
}
