//! Retention: finds versions that exceed the limits of a policy, deletes the unneeded versions, and records clock readings.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use keywright_core::{
    ports::{
        ClockRecord, DeletableVersion, ExceedingCredential, RepositoryError, RetentionClock,
        RetentionPage, RetentionRepository,
    },
    retention::{NameRange, RetentionThreshold},
};
use uuid::Uuid;

use crate::{
    Database,
    credential::row,
    statement::{Row, Statement, built_statement, column, statement},
};

#[async_trait]
impl RetentionRepository for Database {
    async fn page(
        &self,
        names: &NameRange,
        threshold: RetentionThreshold,
        count_max: u32,
    ) -> Result<RetentionPage, RepositoryError> {
        let query = statement(statements::PAGE)
            .bind(names.from.as_str())
            .bind(names.before.as_str())
            .bind(i64::from(count_max));
        let query = bound(query, threshold);
        let rows = self.reader.fetch_all(query).await?;
        let mut exceeding = Vec::new();
        for row in &rows {
            if column!(row, "credential", "exceeds")? {
                exceeding.push(ExceedingCredential {
                    id: column!(row, "credential", "id")?,
                    name: row::name(row)?,
                });
            }
        }
        let is_full = rows.len() >= count_max as usize;
        let last = rows.last().filter(|_| is_full);
        let last_name: Option<String> = last
            .map(|row| column!(row, "credential", "name_folded"))
            .transpose()?;
        Ok(RetentionPage {
            exceeding,
            rest: last_name.map(|name| names.after(&name)),
        })
    }

    async fn deletable_versions(
        &self,
        credential_id: Uuid,
        threshold: RetentionThreshold,
        after_sequence: i64,
        count_max: u32,
    ) -> Result<Vec<DeletableVersion>, RepositoryError> {
        let sql = self.reader.engine().choose(
            statements::POSTGRES_DELETABLE_VERSIONS,
            statements::SQLITE_DELETABLE_VERSIONS,
        );
        let query = statement(sql)
            .bind(credential_id)
            .bind(after_sequence)
            .bind(i64::from(count_max));
        let query = bound(query, threshold);
        let rows = self.reader.fetch_all(query).await?;
        rows.iter().map(deletable_version).collect()
    }

    async fn delete_versions(
        &self,
        credential_id: Uuid,
        threshold: RetentionThreshold,
        version_ids: &[Uuid],
    ) -> Result<Vec<Uuid>, RepositoryError> {
        if version_ids.is_empty() {
            return Ok(Vec::new());
        }
        let engine = self.reader.engine();
        let query = built_statement(statements::delete_versions(engine, version_ids.len()))
            .bind(credential_id)
            .bind(EVERY_SEQUENCE)
            .bind(i64::MAX);
        let query = version_ids
            .iter()
            .fold(bound(query, threshold), |query, id| query.bind(*id));
        // The statement checks again that each version is deletable. It never deletes the latest version or the latest version
        // that is not transitional, so the credential's columns that repeat values of its versions stay correct.
        let rows = self.writer.serializable(query).await?;
        rows.iter()
            .map(|row| column!(row, "credential_version", "id"))
            .collect()
    }
}

/// Binds the threshold: the maximum number of versions as `$4`, 1 or 0 as `$5` (whether there is a maximum), and the time before
/// which a version is too old as `$6`.
fn bound(query: Statement, threshold: RetentionThreshold) -> Statement {
    let created_before = threshold.created_before.as_ref();
    query
        .bind(i64::from(threshold.versions_max.unwrap_or_default()))
        .bind(i64::from(threshold.versions_max.is_some()))
        .bind(created_before.map_or(i64::MIN, DateTime::<Utc>::timestamp_millis))
}

fn deletable_version(row: &Row) -> Result<DeletableVersion, RepositoryError> {
    Ok(DeletableVersion {
        id: column!(row, "credential_version", "id")?,
        sequence: column!(row, "credential_version", "sequence")?,
    })
}

#[async_trait]
impl RetentionClock for Database {
    async fn read(&self) -> Result<Option<ClockRecord>, RepositoryError> {
        let query = statement(statements::READ_CLOCK).bind(CLOCK_ID);
        let Some(row) = self.reader.fetch_optional(query).await? else {
            return Ok(None);
        };
        let seen_at: i64 = column!(row, "retention_clock", "seen_at")?;
        let trusted_from: i64 = column!(row, "retention_clock", "trusted_from")?;
        let times = [seen_at, trusted_from].map(DateTime::from_timestamp_millis);
        // Without a record, the clock settles again.
        Ok(match times {
            [Some(seen_at), Some(trusted_from)] => Some(ClockRecord {
                seen_at,
                trusted_from,
            }),
            _ => None,
        })
    }

    async fn write(&self, record: ClockRecord) -> Result<(), RepositoryError> {
        let query = statement(statements::WRITE_CLOCK)
            .bind(CLOCK_ID)
            .bind(record.seen_at.timestamp_millis())
            .bind(record.trusted_from.timestamp_millis());
        self.writer.execute(query).await.map(drop)
    }
}

/// A lower bound, exclusive, that includes every sequence.
const EVERY_SEQUENCE: i64 = 0;

/// The id of the only row of `retention_clock`.
const CLOCK_ID: i64 = 1;

pub(crate) mod statements {
    //! The SQL. Subqueries check for a single version with `limit` instead of `exists`, because PostgreSQL may turn `exists` into
    //! a join that reads a whole index. Conditions on a credential's sequence are ranges of one value, as in `newest_first!`.

    use crate::{connections::Engine, statement::placeholders};

    /// Selects the first `$3` credentials with folded names from `$1` up to, but not including, `$2`. `exceeds` is whether a
    /// credential has more than `$4` versions (checked only if `$5` is 1), or an oldest version that was created before `$6`
    /// and is not the newest.
    pub(crate) const PAGE: &str = "
        select c.id, c.name, c.name_folded,
            (
                select v.sequence from credential_version v
                where v.credential_sequence between c.sequence and c.sequence
                order by v.credential_sequence desc, v.sequence desc limit $5 offset $4
            ) is not null or coalesce((
                select v.created_at from credential_version v
                where v.credential_sequence between c.sequence and c.sequence and v.sequence < c.newest_sequence
                order by v.credential_sequence, v.sequence limit 1
            ) < $6, false) as exceeds
        from credential c where c.name_folded >= $1 and c.name_folded < $2
        order by c.name_folded limit $3";

    /// PostgreSQL: matches the versions `n` after `v` of the same credential. With an equality of sequences, PostgreSQL might
    /// scan the versions of all credentials.
    macro_rules! postgres_newer {
        () => {
            "(n.credential_sequence, n.sequence) > (v.credential_sequence, v.sequence)
             and n.credential_sequence <= v.credential_sequence"
        };
    }

    /// SQLite: matches the versions `n` after `v` of the same credential. With a comparison of pairs, SQLite would also scan
    /// earlier versions.
    macro_rules! sqlite_newer {
        () => {
            "n.credential_sequence = v.credential_sequence and n.sequence > v.sequence"
        };
    }

    /// The condition for deleting a version of the credential with the id `$1` and with a sequence after `$2`:
    ///
    /// - It exceeds the threshold, as in [`PAGE`].
    /// - It is older than the latest version that is not transitional, and is not transitional itself.
    /// - It signed no stored version.
    /// - It is neither the latest version with a certificate nor the latest version signed by its CA: responses other than
    ///   version lists depend on these two.
    ///
    /// `coalesce` prevents the use of the index of all versions that a CA signed.
    macro_rules! deletable {
        ($newer:expr) => {
            concat!(
                "v.credential_sequence between (select c.sequence from credential c where c.id = $1)
                     and (select c.sequence from credential c where c.id = $1)
                 and v.sequence > $2
                 and not v.is_transitional
                 and v.sequence < (select c.current_sequence from credential c where c.id = $1)
                 and (v.created_at < $6 or v.sequence <= coalesce((
                     select o.sequence from credential_version o
                     where o.credential_sequence between (select c.sequence from credential c where c.id = $1)
                         and (select c.sequence from credential c where c.id = $1)
                     order by o.credential_sequence desc, o.sequence desc limit $5 offset $4
                 ), 0))
                 and (
                     select s.sequence from credential_version s where s.issuer_version_id = v.id limit 1
                 ) is null
                 and (v.expires_at is null or v.sequence < (
                     select o.sequence from credential_version o
                     where o.credential_sequence between (select c.sequence from credential c where c.id = $1)
                         and (select c.sequence from credential c where c.id = $1) and o.expires_at is not null
                     order by o.credential_sequence desc, o.sequence desc limit 1
                 ))
                 and (v.signed_by_folded is null or (
                     select n.sequence from credential_version n
                     where ",
                $newer,
                " and coalesce(n.signed_by_folded, '') = v.signed_by_folded
                     order by n.credential_sequence, n.sequence limit 1
                 ) is not null)"
            )
        };
    }

    macro_rules! select_deletable {
        ($newer:expr) => {
            concat!(
                "select v.id, v.sequence from credential_version v where ",
                deletable!($newer),
                " order by v.credential_sequence, v.sequence limit $3"
            )
        };
    }

    /// PostgreSQL: selects at most `$3` deletable versions.
    pub(crate) const POSTGRES_DELETABLE_VERSIONS: &str = select_deletable!(postgres_newer!());

    /// SQLite: selects at most `$3` deletable versions.
    pub(crate) const SQLITE_DELETABLE_VERSIONS: &str = select_deletable!(sqlite_newer!());

    /// Deletes the deletable versions among `count` versions, whose ids are the last parameters.
    pub(crate) fn delete_versions(engine: Engine, count: usize) -> String {
        let deletable = match engine {
            Engine::Postgres => deletable!(postgres_newer!()),
            Engine::Sqlite => deletable!(sqlite_newer!()),
        };
        format!(
            "delete from credential_version where sequence in (
                 select v.sequence from credential_version v where {deletable} and v.id in ({}) limit $3
             ) returning id",
            placeholders(7, count)
        )
    }

    pub(crate) const READ_CLOCK: &str =
        "select c.seen_at, c.trusted_from from retention_clock c where c.id = $1";

    pub(crate) const WRITE_CLOCK: &str = "
        insert into retention_clock (id, seen_at, trusted_from) values ($1, $2, $3)
        on conflict (id) do update set seen_at = excluded.seen_at, trusted_from = excluded.trusted_from";
}
