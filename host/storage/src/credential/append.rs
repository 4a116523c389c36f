//! Adding versions in one transaction that validates their preconditions: a single version, or versions of several
//! credentials, alone or with another change.

use std::{
    collections::BTreeMap,
    iter::once,
    sync::{Arc, LazyLock},
};

use chrono::{DateTime, Utc};
use keywright_core::{
    certificate::CertificateFacts,
    credential::{CredentialName, CredentialType, IssuerVersion, StoredVersion, VersionAttributes},
    ports::{
        Additions, AppendCondition, Appended, Identifiers, NewVersion, ReadSigned, ReadVersions,
        RepositoryError, VersionSelection,
    },
};
use uuid::Uuid;

use super::{
    row::{self, NewColumn, new_columns},
    statements,
};
use crate::{
    connections::{Ended, Engine, Transaction},
    error::{TRANSITIONAL_VERSION, is_refused, sequence_behind},
    statement::{
        Row, Statement, StatementOfMany, built_statement, column, placeholders, statement,
    },
};

/// A version to add, and the preconditions for adding it.
#[derive(Clone)]
pub(super) struct Addition {
    pub(super) identifiers: Arc<dyn Identifiers>,
    pub(super) version: NewVersion,
    pub(super) condition: AppendCondition,
    pub(super) unchanged: Vec<ReadVersions>,
}

/// Runs the transaction that adds a version alone.
pub(super) async fn append_once(
    mut transaction: Transaction,
    addition: Arc<Addition>,
) -> Result<Ended<Result<AddedVersion, Appended>>, RepositoryError> {
    let Addition {
        identifiers,
        version,
        condition,
        unchanged,
    } = addition.as_ref();
    if !are_unchanged(&mut transaction, unchanged).await? {
        return transaction.conclude(Err(Appended::Outdated)).await;
    }
    match append_within(&mut transaction, identifiers.as_ref(), version, *condition).await? {
        Ok(added) => transaction.commit(Ok(added)).await,
        Err(refused) => transaction.conclude(Err(refused)).await,
    }
}

/// Adds a version within a transaction. The caller must commit only if this returns an added version. Otherwise, this returns the
/// reason, which is never [`Appended::Written`].
pub(super) async fn append_within(
    transaction: &mut Transaction,
    identifiers: &dyn Identifiers,
    version: &NewVersion,
    condition: AppendCondition,
) -> Result<Result<AddedVersion, Appended>, RepositoryError> {
    let credential = match find_credential(transaction, &version.name, condition).await? {
        Some(existing) => {
            // The caller may not know the type of a credential in another casing.
            if existing.name.as_str() != version.name.as_str() {
                return Ok(Err(Appended::CasingDiffers(existing.name)));
            }
            if existing.credential_type != version.credential_type {
                return Ok(Err(Appended::TypeDiffers(existing.credential_type)));
            }
            if !holds(condition, Some(&existing)) {
                return Ok(Err(Appended::Changed));
            }
            existing
        }
        None if !holds(condition, None) => return Ok(Err(Appended::Changed)),
        None => insert_credential(transaction, identifiers.fresh(), version).await?,
    };
    let inserted = insert_version(transaction, credential.sequence, version).await?;
    let Some(sequence) = inserted else {
        return Ok(Err(Appended::TransitionalExists));
    };
    Ok(Ok(AddedVersion {
        sequence,
        credential,
    }))
}

/// A version that a transaction added, by its sequence and its credential.
pub(super) struct AddedVersion {
    pub(super) sequence: i64,
    pub(super) credential: CredentialRow,
}

impl AddedVersion {
    /// Returns the version as a read would return it.
    pub(super) fn stored(self, version: NewVersion) -> StoredVersion {
        let Self {
            sequence,
            credential,
        } = self;
        let attributes = version.attributes;
        StoredVersion {
            id: version.id,
            sequence,
            credential_id: credential.id,
            name: credential.name,
            credential_type: credential.credential_type,
            created_at: in_milliseconds(version.created_at),
            attributes: VersionAttributes {
                certificate: attributes.certificate.map(|facts| CertificateFacts {
                    expires_at: in_milliseconds(facts.expires_at),
                    ..facts
                }),
                issuer: attributes.issuer.map(|issuer| IssuerVersion {
                    expires_at: in_milliseconds(issuer.expires_at),
                    ..issuer
                }),
                ..attributes
            },
            envelope: version.envelope,
        }
    }
}

pub(super) struct CredentialRow {
    pub(super) sequence: i64,
    pub(super) id: Uuid,
    pub(super) name: CredentialName,
    pub(super) credential_type: CredentialType,
    /// Set only if the condition depends on it.
    pub(super) newest_version_id: Option<Uuid>,
}

/// Returns whether the condition is met by this credential, or by its absence.
pub(super) fn holds(condition: AppendCondition, credential: Option<&CredentialRow>) -> bool {
    match condition {
        AppendCondition::Always => true,
        AppendCondition::CredentialIs(expected) => {
            credential.is_some_and(|credential| credential.id == expected)
        }
        AppendCondition::NewestIs(expected) => {
            credential.and_then(|credential| credential.newest_version_id) == expected
        }
    }
}

async fn find_credential(
    transaction: &mut Transaction,
    name: &CredentialName,
    condition: AppendCondition,
) -> Result<Option<CredentialRow>, RepositoryError> {
    let sql = match condition {
        AppendCondition::NewestIs(_) => CREDENTIAL_AND_NEWEST_VERSION,
        AppendCondition::Always | AppendCondition::CredentialIs(_) => CREDENTIAL_BY_NAME,
    };
    let query = statement(sql).bind(name.folded());
    let row = transaction.fetch_optional(query).await?;
    let Some(row) = row.as_ref() else {
        return Ok(None);
    };
    Ok(Some(CredentialRow {
        sequence: column!(row, "credential", "sequence")?,
        id: column!(row, "credential", "id")?,
        name: CredentialName::from_stored(column!(row, "credential", "name")?),
        credential_type: row::credential_type(row)?,
        newest_version_id: column!(row, "credential_version", "newest_version_id")?,
    }))
}

async fn insert_credential(
    transaction: &mut Transaction,
    id: Uuid,
    version: &NewVersion,
) -> Result<CredentialRow, RepositoryError> {
    let query = statement(INSERT_CREDENTIAL)
        .bind(id)
        .bind(version.name.as_str())
        .bind(version.name.folded())
        .bind(version.credential_type.as_str())
        .bind(version.created_at.timestamp_millis());
    let row = transaction.fetch_one(query).await?;
    Ok(CredentialRow {
        sequence: column!(row, "credential", "sequence")?,
        id,
        name: version.name.clone(),
        credential_type: version.credential_type.clone(),
        newest_version_id: None,
    })
}

/// Inserts the version, points the credential at it, and returns its sequence. `None` if the version is transitional and the
/// credential already has a transitional version.
async fn insert_version(
    transaction: &mut Transaction,
    credential_sequence: i64,
    version: &NewVersion,
) -> Result<Option<i64>, RepositoryError> {
    let is_transitional = version.attributes.is_transitional;
    let inserted = match transaction.engine() {
        Engine::Postgres => {
            let versions = [(credential_sequence, version)];
            let query = postgres_add_versions(&versions, true);
            // Fetches all rows, so that the statement runs to its end.
            transaction.fetch_all(query).await.and_then(|rows| {
                let added = rows.first().ok_or_else(sequence_behind)?;
                column!(added, "credential_version", "sequence")
            })
        }
        Engine::Sqlite => {
            let query = sqlite_add_version(credential_sequence, version);
            transaction.insert_on_sqlite(&query)
        }
    };
    let sequence: i64 = match inserted {
        Err(failure) if is_transitional && is_refused(&failure, &TRANSITIONAL_VERSION) => {
            return Ok(None);
        }
        inserted => inserted?,
    };
    if transaction.engine() == Engine::Sqlite {
        let query = statement(SQLITE_POINT_AT_NEW_VERSION)
            .bind(credential_sequence)
            .bind(sequence)
            .bind(version.created_at.timestamp_millis())
            .bind(
                version
                    .attributes
                    .due_at()
                    .map(|time| time.timestamp_millis()),
            )
            .bind(is_transitional);
        transaction.execute(query).await?;
    }
    insert_inputs(transaction, sequence, version).await?;
    Ok(Some(sequence))
}

/// Records the inputs of a version, each credential once.
async fn insert_inputs(
    transaction: &mut Transaction,
    sequence: i64,
    version: &NewVersion,
) -> Result<(), RepositoryError> {
    let inputs = version.inputs.iter();
    let inputs: BTreeMap<String, Uuid> = inputs
        .map(|input| (input.name.folded(), input.version_id))
        .collect();
    for (name, version_id) in inputs {
        let query = statement(INSERT_INPUT)
            .bind(sequence)
            .bind(name)
            .bind(version_id);
        transaction.execute(query).await?;
    }
    Ok(())
}

pub(super) async fn append_all_once(
    mut transaction: Transaction,
    identifiers: Arc<dyn Identifiers>,
    additions: Arc<Additions>,
) -> Result<Ended<Option<Vec<AddedVersion>>>, RepositoryError> {
    if !are_inputs_unchanged(&mut transaction, &additions).await? {
        return transaction.conclude(None).await;
    }
    match append_each(&mut transaction, identifiers.as_ref(), &additions.versions).await? {
        Some(added) => transaction.commit(Some(added)).await,
        None => transaction.roll_back(None).await,
    }
}

/// Returns whether all inputs of the additions are unchanged. Must be called before the transaction changes anything.
pub(super) async fn are_inputs_unchanged(
    transaction: &mut Transaction,
    additions: &Additions,
) -> Result<bool, RepositoryError> {
    Ok(are_unchanged(transaction, &additions.unchanged).await?
        && are_all_signed(transaction, &additions.signed).await?)
}

/// Returns whether reading these versions again returns the same ids and transitional flags.
async fn are_unchanged(
    transaction: &mut Transaction,
    unchanged: &[ReadVersions],
) -> Result<bool, RepositoryError> {
    for read in unchanged {
        let query = match count_max(read.selection) {
            Some(count_max) => statement(statements::VERSION_IDS_NEWEST_FIRST)
                .bind(read.name.folded())
                .bind(count_max),
            None => statement(statements::VERSION_IDS_CURRENT).bind(read.name.folded()),
        };
        if versions(&transaction.fetch_all(query).await?)? != read.versions {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns whether the credentials that each of these CAs signed, and the transitional flags of their latest versions, are still the
/// same.
async fn are_all_signed(
    transaction: &mut Transaction,
    signed: &[ReadSigned],
) -> Result<bool, RepositoryError> {
    for read in signed {
        let sql = statements::newest_ids_signed_by(read.types, read.signers.len());
        // One more row than expected is enough to detect a difference.
        let count_max = i64::try_from(read.versions.len()).map_or(i64::MAX, |count| count + 1);
        let query = built_statement(sql)
            .bind(CredentialType::CERTIFICATE)
            .bind(count_max);
        let signers = read.signers.iter();
        let query = signers.fold(query, |query, signer| query.bind(signer.folded()));
        if versions(&transaction.fetch_all(query).await?)? != read.versions {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Adds versions within a transaction, which the caller must commit only if all of them were written. `None` if a version can't
/// be added.
pub(super) async fn append_each(
    transaction: &mut Transaction,
    identifiers: &dyn Identifiers,
    versions: &[(NewVersion, AppendCondition)],
) -> Result<Option<Vec<AddedVersion>>, RepositoryError> {
    let mut added = Vec::with_capacity(versions.len());
    for (version, condition) in versions {
        match append_within(transaction, identifiers, version, *condition).await? {
            Ok(one) => added.push(one),
            Err(_) => return Ok(None),
        }
    }
    Ok(Some(added))
}

/// Returns the id and the transitional flag of each row.
fn versions(rows: &[Row]) -> Result<Vec<(Uuid, bool)>, RepositoryError> {
    let of_row = |row: &Row| {
        Ok((
            column!(row, "credential_version", "id")?,
            column!(row, "credential_version", "is_transitional")?,
        ))
    };
    rows.iter().map(of_row).collect()
}

/// Returns the maximum number of versions of a selection. `None` for the current versions, which need another query.
pub(super) fn count_max(selection: VersionSelection) -> Option<i64> {
    match selection {
        VersionSelection::Current => None,
        VersionSelection::Newest(count) => Some(i64::from(count)),
    }
}

/// Truncates a time to the precision of the database.
fn in_milliseconds(time: DateTime<Utc>) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(time.timestamp_millis()).unwrap_or(time)
}

pub(crate) const CREDENTIAL_BY_NAME: &str = "
    select c.sequence, c.id, c.name, c.credential_type, cast(null as uuid) as newest_version_id
    from credential c where c.name_folded = $1";

/// Like [`CREDENTIAL_BY_NAME`], with the latest version, for decisions based on it. On PostgreSQL, reading a version conflicts
/// with concurrent additions of versions to the credential.
pub(crate) const CREDENTIAL_AND_NEWEST_VERSION: &str = "
    select c.sequence, c.id, c.name, c.credential_type, v.id as newest_version_id
    from credential c left join credential_version v on v.sequence = c.newest_sequence
    where c.name_folded = $1";

pub(crate) const INSERT_CREDENTIAL: &str = "
    insert into credential (id, name, name_folded, credential_type, created_at)
    values ($1, $2, $3, $4, $5) returning sequence";

/// PostgreSQL: inserts versions of the credentials with these sequences, and points the credentials at them, in a single round
/// trip. A new version is the newest; it is also the active version unless it is transitional. Returns no row for a version
/// whose sequence is not after the latest version's sequence.
///
/// The number of rows in the text is a power of two, so that few texts exist and stay prepared. Unused rows have no id.
pub(super) fn postgres_add_versions(
    versions: &[(i64, &NewVersion)],
    may_be_signed: bool,
) -> Statement {
    let statement = if may_be_signed {
        &POSTGRES_ADD_VERSIONS
    } else {
        &POSTGRES_ADD_UNSIGNED_VERSIONS
    };
    let (query, count) = statement.with_placeholders(versions.len());
    (0..count).fold(query, |query, row| {
        let (credential_sequence, version) = versions.get(row).copied().unzip();
        bind_version(query, credential_sequence, version, may_be_signed)
    })
}

pub(crate) static POSTGRES_ADD_VERSIONS: StatementOfMany =
    StatementOfMany::new(|count| postgres_add_versions_sql(count, true));

pub(crate) static POSTGRES_ADD_UNSIGNED_VERSIONS: StatementOfMany =
    StatementOfMany::new(|count| postgres_add_versions_sql(count, false));

fn postgres_add_versions_sql(count: usize, may_be_signed: bool) -> String {
    let types: Vec<_> = once("bigint")
        .chain(new_columns(may_be_signed).map(NewColumn::type_name))
        .collect();
    // Repeated, so that no plan reads other credentials.
    let sequences: Vec<_> = (0..count)
        .map(|row| format!("${}", row * types.len() + 1))
        .collect();
    format!(
        "with new ({columns}) as (values {rows}),
         added as (
             insert into credential_version ({columns}) select {columns} from new where id is not null
             returning id, sequence, credential_sequence, created_at, is_transitional,
                 coalesce(rotate_at, value_expires_at, expires_at) as due_at
         )
         update credential set newest_sequence = added.sequence, newest_created_at = added.created_at,
             newest_expires_at = added.due_at,
             current_sequence = case when added.is_transitional then current_sequence else added.sequence end,
             current_created_at = case when added.is_transitional then current_created_at else added.created_at end
         from added where credential.sequence in ({sequences}) and credential.sequence = added.credential_sequence
             and (credential.newest_sequence is null or credential.newest_sequence < added.sequence)
         returning added.id, added.sequence",
        columns = names(may_be_signed),
        rows = rows(count, &types),
        sequences = sequences.join(", ")
    )
}

/// Returns rows of parameters. The first row declares the types.
pub(super) fn rows(count: usize, types: &[&str]) -> String {
    let row = |row: usize| {
        let parameters = types.iter().enumerate().map(|(column, type_name)| {
            let number = row * types.len() + column + 1;
            match row {
                0 => format!("${number}::{type_name}"),
                _ => format!("${number}"),
            }
        });
        format!("({})", parameters.collect::<Vec<_>>().join(", "))
    };
    (0..count).map(row).collect::<Vec<_>>().join(", ")
}

/// SQLite: inserts a version of the credential with this sequence. Must be followed by [`SQLITE_POINT_AT_NEW_VERSION`].
fn sqlite_add_version(credential_sequence: i64, version: &NewVersion) -> Statement {
    let query = statement(&SQLITE_ADD_VERSION);
    bind_version(query, Some(credential_sequence), Some(version), true)
}

pub(crate) static SQLITE_ADD_VERSION: LazyLock<String> = LazyLock::new(|| {
    format!(
        "insert into credential_version ({}) values ({})",
        names(true),
        placeholders(1, new_columns(true).count() + 1)
    )
});

/// SQLite: points the credential `$1` at its new version `$2`, as [`postgres_add_versions`] does.
pub(crate) const SQLITE_POINT_AT_NEW_VERSION: &str = "
    update credential set newest_sequence = $2, newest_created_at = $3, newest_expires_at = $4,
        current_sequence = case when $5 then current_sequence else $2 end,
        current_created_at = case when $5 then current_created_at else $3 end
    where sequence = $1";

/// Records the version `$3` of the credential with the folded name `$2` as an input of the version with the sequence `$1`.
pub(crate) const INSERT_INPUT: &str = "
    insert into credential_version_input (version_sequence, input_name_folded, input_version_id) values ($1, $2, $3)";

/// Returns the names of the columns that [`bind_version`] binds.
fn names(may_be_signed: bool) -> String {
    let names = new_columns(may_be_signed).map(|column| column.name);
    once("credential_sequence")
        .chain(names)
        .collect::<Vec<_>>()
        .join(", ")
}

/// Binds the sequence of the credential and the columns of a version, or nulls.
fn bind_version(
    query: Statement,
    credential_sequence: Option<i64>,
    version: Option<&NewVersion>,
    may_be_signed: bool,
) -> Statement {
    let query = query.bind(credential_sequence);
    new_columns(may_be_signed).fold(query, |query, column| query.bind((column.value)(version)))
}
