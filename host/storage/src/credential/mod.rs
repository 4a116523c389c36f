//! Credentials and their versions.

pub(crate) mod append;
mod append_batches;
mod certificates;
mod change_versions;
pub(crate) mod find;
pub(crate) mod row;
pub(crate) mod statements;

use std::{cmp::Reverse, collections::BTreeSet, sync::Arc};

use async_trait::async_trait;
use keywright_core::{
    credential::{CredentialName, CredentialType, LookupName, StoredVersion},
    permission::{Actor, Operation, Operations, Permission, PermissionPath},
    ports::{
        Additions, AllAppended, AppendCondition, Appended, CredentialKey, CredentialRepository,
        Deleted, NewVersion, NewestSize, PermittedRead, PermittedVersions, ReadVersions,
        RepositoryError, SignedName, SignedTypes, VersionChange, VersionChanged, VersionKey,
        VersionSelection, VersionsSize,
    },
    retention::BATCH_VERSIONS_MAX,
};
use uuid::Uuid;

use crate::{
    Database,
    connections::{Connections, PostgresConnections, SqliteReaders},
    permission,
    statement::{
        Decoded, Parameter, Statement, StatementOfMany, built_statement, column, column_at,
        statement,
    },
};
use append::{Addition, append_all_once, append_once};
pub(crate) use append_batches::AppendBatches;
#[cfg(test)]
pub(crate) use append_batches::append_batches;
use change_versions::{Request, change_once};

impl Database {
    /// Runs a statement that reads at most one name.
    async fn name(&self, query: Statement) -> Result<Option<CredentialName>, RepositoryError> {
        let row = self.reader.fetch_optional(query.short()).await?;
        row.as_ref().map(row::name).transpose()
    }

    /// Runs a statement for any number of names, in batches: the time to prepare a statement grows faster than its number of
    /// parameters.
    async fn of_names<'n, T: Decoded, const PER_NAME: usize>(
        &self,
        actor: &Actor,
        statement: &'static StatementOfMany,
        names: &'n [LookupName],
        parameters: fn(&'n LookupName) -> [&'n str; PER_NAME],
    ) -> Result<Vec<T>, RepositoryError> {
        // A statement may look up each name separately, and would return a repeated name twice.
        let names: BTreeSet<[&str; PER_NAME]> = names.iter().map(parameters).collect();
        let names = Vec::from_iter(names);
        let mut all = Vec::new();
        for some in names.chunks(NAMES_AT_ONCE) {
            let query = statement.bind([], some.as_flattened().iter().copied());
            let reading = if some.len() <= statements::NAMES_ONE_BY_ONE_MAX {
                self.reader.decode_all(query.short()).await
            } else {
                self.reader.of_actor(actor).decode_all(query).await
            };
            all.append(&mut reading?);
        }
        Ok(all)
    }

    fn signed_by(sql: String, signers: &[LookupName], count_max: u32) -> Statement {
        let query = built_statement(sql)
            .bind(CredentialType::CERTIFICATE)
            .bind(i64::from(count_max));
        let signers = signers.iter().map(LookupName::folded);
        signers.fold(query, Statement::bind)
    }
}

#[async_trait]
impl CredentialRepository for Database {
    async fn name_of_version(&self, id: Uuid) -> Result<Option<CredentialName>, RepositoryError> {
        let query = statement(statements::NAME_FROM_VERSION_ID).bind(id);
        let Some(row) = self.reader.fetch_optional(query.short()).await? else {
            return Ok(None);
        };
        let found: Uuid = column!(row, "credential_version", "id")?;
        let name = row::name(&row)?;
        Ok((found == id).then_some(name))
    }

    async fn name_of_certificate(
        &self,
        credential_id: Uuid,
    ) -> Result<Option<CredentialName>, RepositoryError> {
        let query = statement(statements::NAME_FROM_CREDENTIAL_ID).bind(credential_id);
        let Some(row) = self.reader.fetch_optional(query.short()).await? else {
            return Ok(None);
        };
        let found: Uuid = column!(row, "credential", "id")?;
        let (name, credential_type) = (row::name(&row)?, row::credential_type(&row)?);
        Ok((found == credential_id && credential_type.is_certificate()).then_some(name))
    }

    async fn stored_name(
        &self,
        name: &LookupName,
    ) -> Result<Option<CredentialName>, RepositoryError> {
        let query = statement(statements::STORED_NAME).bind(name.folded());
        self.name(query).await
    }

    async fn read_permitted(
        &self,
        read: PermittedRead<'_>,
        permits: &mut (dyn FnMut(Vec<Permission>) -> bool + Send),
    ) -> Result<PermittedVersions, RepositoryError> {
        match &self.reader {
            // Boxed, so that reads from SQLite don't need memory for this much larger future.
            Connections::Postgres(connections) => {
                Box::pin(permitted_from_postgres(connections, read, permits)).await
            }
            Connections::Sqlite(readers) => permitted_from_sqlite(readers, read, permits).await,
        }
    }

    async fn version_by_id(&self, id: Uuid) -> Result<Option<StoredVersion>, RepositoryError> {
        let query = statement(statements::VERSION_BY_ID).bind(id).short();
        Ok(self.reader.decode_all(query).await?.pop())
    }

    async fn versions_of(
        &self,
        credential: CredentialKey<'_>,
        selection: VersionSelection,
    ) -> Result<Vec<StoredVersion>, RepositoryError> {
        let engine = self.reader.engine();
        let (newest_first, current) = match credential {
            CredentialKey::Id(_) => (
                statements::VERSIONS_OF_CREDENTIAL_NEWEST_FIRST,
                statements::VERSIONS_OF_CREDENTIAL_CURRENT,
            ),
            CredentialKey::Name(_) => (
                statements::VERSIONS_NEWEST_FIRST,
                engine.choose(
                    statements::POSTGRES_VERSIONS_CURRENT,
                    statements::SQLITE_VERSIONS_CURRENT,
                ),
            ),
        };
        let of_credential = |sql| match credential {
            CredentialKey::Id(id) => statement(sql).bind(id),
            CredentialKey::Name(name) => statement(sql).bind(name.folded()),
        };
        let query = match selection {
            VersionSelection::Current => of_credential(current).short(),
            VersionSelection::Newest(count) => {
                let query = of_credential(newest_first).bind(i64::from(count));
                if count <= VERSIONS_IN_PLACE_MAX {
                    query.short()
                } else {
                    query
                }
            }
        };
        self.reader.decode_all(query).await
    }

    async fn size_of_versions(
        &self,
        actor: &Actor,
        credential: CredentialKey<'_>,
        count_max: u32,
    ) -> Result<VersionsSize, RepositoryError> {
        let query = match credential {
            CredentialKey::Id(id) => statement(statements::SIZE_OF_VERSIONS_OF_CREDENTIAL).bind(id),
            CredentialKey::Name(name) => {
                statement(statements::SIZE_OF_VERSIONS).bind(name.folded())
            }
        };
        let query = query.bind(i64::from(count_max));
        let reader = self.reader.of_actor(actor);
        let row = reader.fetch_optional(query).await?;
        row.as_ref()
            .map_or_else(|| Ok(VersionsSize::default()), row::versions_size)
    }

    async fn newest_sizes_by_names(
        &self,
        actor: &Actor,
        names: &[LookupName],
    ) -> Result<Vec<NewestSize>, RepositoryError> {
        let sizes = &statements::NEWEST_SIZES_BY_NAMES;
        self.of_names(actor, sizes, names, |name| [name.folded()])
            .await
    }

    async fn newest_by_names(
        &self,
        actor: &Actor,
        names: &[LookupName],
    ) -> Result<Vec<StoredVersion>, RepositoryError> {
        let newest = &statements::NEWEST_BY_NAMES;
        self.of_names(actor, newest, names, |name| {
            [name.folded(), name.requested()]
        })
        .await
    }

    async fn newest_signed_by(
        &self,
        signers: &[LookupName],
        types: SignedTypes,
        count_max: u32,
    ) -> Result<Vec<StoredVersion>, RepositoryError> {
        if signers.is_empty() {
            return Ok(Vec::new());
        }
        let sql = statements::newest_signed_by(types, signers.len());
        let query = Self::signed_by(sql, signers, count_max);
        self.reader.decode_all(query).await
    }

    async fn names_signed_by(
        &self,
        actor: &Actor,
        signers: &[LookupName],
        types: SignedTypes,
        count_max: u32,
    ) -> Result<Vec<SignedName>, RepositoryError> {
        if signers.is_empty() {
            return Ok(Vec::new());
        }
        let sql = statements::names_signed_by(types, signers.len());
        let query = Self::signed_by(sql, signers, count_max);
        let rows = self.reader.of_actor(actor).fetch_all(query).await?;
        rows.iter().map(row::signed_name).collect()
    }

    async fn append(
        &self,
        version: NewVersion,
        condition: AppendCondition,
        unchanged: &[ReadVersions],
    ) -> Result<Appended, RepositoryError> {
        let addition = Arc::new(Addition {
            identifiers: Arc::clone(&self.identifiers),
            version,
            condition,
            unchanged: unchanged.to_vec(),
        });
        let batched = match &self.append_batches {
            Some(batches) => batches.append(&addition).await?,
            None => None,
        };
        let appended = if let Some(added) = batched {
            Ok(added)
        } else {
            let shared = Arc::clone(&addition);
            let once = move |transaction| append_once(transaction, Arc::clone(&shared));
            self.writer.transaction(once).await?
        };
        Ok(match appended {
            Ok(added) => {
                let version = Arc::unwrap_or_clone(addition).version;
                Appended::Written(Box::new(added.stored(version)))
            }
            Err(refused) => refused,
        })
    }

    async fn append_all(&self, additions: Additions) -> Result<AllAppended, RepositoryError> {
        let identifiers = Arc::clone(&self.identifiers);
        let additions = Arc::new(additions);
        let shared = Arc::clone(&additions);
        let once = move |transaction| {
            append_all_once(transaction, Arc::clone(&identifiers), Arc::clone(&shared))
        };
        let added = self.writer.transaction(once).await?;
        let versions = Arc::unwrap_or_clone(additions).versions.into_iter();
        let versions = versions.map(|(version, _)| version);
        let Some(added) = added else {
            return Ok(AllAppended::Changed(versions.collect()));
        };
        let written = versions.zip(added);
        let written = written.map(|(version, added)| added.stored(version));
        Ok(AllAppended::Written(written.collect()))
    }

    async fn change_version(
        &self,
        credential_id: Uuid,
        change: VersionChange,
        additions: Additions,
    ) -> Result<VersionChanged, RepositoryError> {
        let request = Arc::new(Request {
            identifiers: Arc::clone(&self.identifiers),
            credential_id,
            change,
            additions,
        });
        self.writer
            .transaction(move |transaction| change_once(transaction, Arc::clone(&request)))
            .await
    }

    async fn delete(&self, name: &CredentialName) -> Result<Deleted, RepositoryError> {
        let run = |sql| {
            let query = statement(sql).bind(name.folded()).bind(name.as_str());
            let query = query.bind(i64::from(BATCH_VERSIONS_MAX));
            self.writer.serializable(query)
        };
        if let Some(row) = run(statements::DELETE_CREDENTIAL).await?.first() {
            return column!(row, "credential", "id").map(Deleted::Credential);
        }
        // The credential has too many versions for one transaction, or had them until another request deleted some; or it does
        // not exist.
        let is_absent = run(statements::DELETE_OLDEST_VERSIONS).await?.is_empty()
            && self.stored_name(&name.lookup()).await?.as_ref() != Some(name);
        Ok(if is_absent {
            Deleted::Nothing
        } else {
            Deleted::OldestVersions
        })
    }

    async fn ping(&self) -> Result<(), RepositoryError> {
        let query = statement(statements::PING).bind(Uuid::nil()).short();
        self.reader.fetch_all(query).await?;
        if self.writer.is_failing() {
            return Err(RepositoryError::Unavailable(Box::new(WriteCheckError)));
        }
        Ok(())
    }
}

/// Whether these permissions allow reading the versions.
type Permits<'a> = &'a mut (dyn FnMut(Vec<Permission>) -> bool + Send);

/// Reads permitted versions on one snapshot of the database, on the caller's thread.
async fn permitted_from_sqlite(
    readers: &SqliteReaders,
    read: PermittedRead<'_>,
    permits: Permits<'_>,
) -> Result<PermittedVersions, RepositoryError> {
    let on_paths = permission::of_actor_on_and_end(read.actor, read.paths);
    let named = |sql: &'static str| {
        let query = statement(sql).bind(read.name.folded());
        query.bind(read.name.requested())
    };
    let chosen = match read.versions {
        VersionKey::Id(id) => named(statements::SQLITE_NAMED_VERSION_BY_ID).bind(id),
        CURRENT => named(statements::SQLITE_NAMED_VERSION_CURRENT),
        VersionKey::Selected(VersionSelection::Newest(count)) => {
            named(statements::SQLITE_NAMED_VERSIONS_NEWEST_FIRST).bind(i64::from(count))
        }
    };
    let reading = readers.in_place(|connection| {
        connection.decode_and_read(&on_paths, |granted| {
            if !permits(granted) {
                return Ok(Ok(PermittedVersions::default()));
            }
            let mut found: Result<Vec<StoredVersion>, _> = connection.decode_all(&chosen)?;
            if let (CURRENT, Ok(versions)) = (read.versions, &mut found)
                && versions
                    .iter()
                    .all(|version| version.credential_type.is_certificate())
            {
                let transitional = named(statements::SQLITE_NAMED_VERSION_TRANSITIONAL);
                match connection.decode_all(&transitional)? {
                    Ok(transitional) => versions.extend::<Vec<_>>(transitional),
                    Err(failure) => found = Err(failure),
                }
            }
            let stored = if matches!(&found, Ok(none) if none.is_empty()) {
                let stored_name = statement(statements::STORED_NAME).bind(read.name.folded());
                connection.fetch_optional(&stored_name)?
            } else {
                None
            };
            let stored_name = stored.as_ref().map(row::name).transpose();
            Ok(found.and_then(|versions| {
                stored_name.map(|stored_name| PermittedVersions {
                    versions,
                    stored_name,
                })
            }))
        })
    });
    reading.await??
}

/// Reads permitted versions in one round trip: the database also checks the permission, before it reads anything of the credential.
async fn permitted_from_postgres(
    connections: &PostgresConnections,
    read: PermittedRead<'_>,
    permits: Permits<'_>,
) -> Result<PermittedVersions, RepositoryError> {
    let rows = connections.fetch_all(permitted_statement(read)).await?;
    let mut granted = Vec::new();
    let mut found = Vec::new();
    let mut stored: Option<String> = None;
    for row in &rows {
        let permission_id: Option<Uuid> = column_at!(row, 0, "permission", "id")?;
        let name: Option<String> = column_at!(row, NAME_COLUMN, "credential", "name")?;
        if permission_id.is_some() {
            granted.push(Permission::decode(row)?);
        } else if name.is_some() {
            stored = name;
        } else {
            found.push(row::stored_version_from(row, NAME_COLUMN + 1)?);
        }
    }
    if !permits(granted) {
        return Ok(PermittedVersions::default());
    }
    match read.versions {
        CURRENT => found.sort_by_key(|version| version.attributes.is_transitional),
        VersionKey::Id(_) | VersionKey::Selected(VersionSelection::Newest(_)) => {
            found.sort_by_key(|version| Reverse(version.sequence));
        }
    }
    let stored = stored.filter(|_| found.is_empty());
    Ok(PermittedVersions {
        versions: found,
        stored_name: stored.map(CredentialName::from_stored),
    })
}

fn permitted_statement(read: PermittedRead<'_>) -> Statement {
    let bits = Operations::of([Operation::Read]).map_or(0, Operations::bits);
    let common = [
        read.actor.as_str().into(),
        i64::from(bits).into(),
        read.name.folded().into(),
        read.name.requested().into(),
    ];
    let (statement, chosen): (_, Option<Parameter>) = match read.versions {
        CURRENT => (&statements::POSTGRES_PERMITTED_VERSIONS_CURRENT, None),
        VersionKey::Id(id) => (
            &statements::POSTGRES_PERMITTED_VERSION_BY_ID,
            Some(id.into()),
        ),
        VersionKey::Selected(VersionSelection::Newest(count)) => (
            &statements::POSTGRES_PERMITTED_VERSIONS_NEWEST_FIRST,
            Some(i64::from(count).into()),
        ),
    };
    let paths = read.paths.iter().map(PermissionPath::as_str);
    statement
        .bind(common.into_iter().chain(chosen), paths)
        .short()
}

/// The database responds, but writes fail.
#[derive(Debug, thiserror::Error)]
#[error("the last write to the database failed: its disk is full or broken")]
struct WriteCheckError;

const CURRENT: VersionKey = VersionKey::Selected(VersionSelection::Current);

/// The maximum number of names in a statement.
const NAMES_AT_ONCE: usize = 256;

/// SQLite: the maximum number of versions that are read on the caller's thread.
const VERSIONS_IN_PLACE_MAX: u32 = 32;

/// The column of the stored name in PostgreSQL's result, before the columns of a version.
const NAME_COLUMN: usize = 4;
