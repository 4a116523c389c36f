//! Reading versions together with the permissions that apply to them.

use std::cmp::Reverse;

use keywright_core::{
    credential::{CredentialName, StoredVersion},
    permission::{Operations, Permission, PermissionPath},
    ports::{PermittedRead, PermittedVersions, RepositoryError, VersionKey},
};
use uuid::Uuid;

use super::{row, statements};
use crate::{
    connections::{Connections, PostgresConnections, SqliteReaders},
    permission,
    row::{Decoded, column_at},
    statement::{Parameter, Statement, statement},
};

/// Whether these permissions allow reading the versions.
type Permits<'a> = &'a mut (dyn FnMut(Vec<Permission>) -> bool + Send);

/// Reads versions, if the permissions allow it.
pub(super) async fn read(
    reader: &Connections,
    read: PermittedRead<'_>,
    permits: Permits<'_>,
) -> Result<PermittedVersions, RepositoryError> {
    match reader {
        // Boxed, so that reads from SQLite don't need memory for this much larger future.
        Connections::Postgres(connections) => {
            Box::pin(from_postgres(connections, read, permits)).await
        }
        Connections::Sqlite(readers) => from_sqlite(readers, read, permits).await,
    }
}

/// Reads on one snapshot of the database, on the caller's thread.
async fn from_sqlite(
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
        VersionKey::Current => named(statements::SQLITE_NAMED_VERSION_CURRENT),
        VersionKey::Id(id) => named(statements::SQLITE_NAMED_VERSION_BY_ID).bind(id),
        VersionKey::Newest(count) => {
            named(statements::SQLITE_NAMED_VERSIONS_NEWEST_FIRST).bind(i64::from(count))
        }
    };
    let reading = readers.in_place(|connection| {
        connection.decode_and_read(&on_paths, |granted| {
            if !permits(granted) {
                return Ok(Ok(PermittedVersions::default()));
            }
            let mut found: Result<Vec<StoredVersion>, _> = connection.decode_all(&chosen)?;
            if let (VersionKey::Current, Ok(versions)) = (read.versions, &mut found)
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
            Ok(permitted(found, stored.as_ref().map(row::name)))
        })
    });
    reading.await??
}

/// Reads in one round trip: the database also checks the operation, before it reads anything of the credential.
async fn from_postgres(
    connections: &PostgresConnections,
    read: PermittedRead<'_>,
    permits: Permits<'_>,
) -> Result<PermittedVersions, RepositoryError> {
    let rows = connections.fetch_all(for_postgres(read)).await?;
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
        VersionKey::Current => found.sort_by_key(|version| version.attributes.is_transitional),
        VersionKey::Id(_) | VersionKey::Newest(_) => {
            found.sort_by_key(|version| Reverse(version.sequence));
        }
    }
    let stored = stored.filter(|_| found.is_empty());
    permitted(Ok(found), stored.map(CredentialName::from_stored).map(Ok))
}

fn for_postgres(read: PermittedRead<'_>) -> Statement {
    let bits = Operations::of([read.operation]).map_or(0, Operations::bits);
    let common = [
        read.actor.as_str().into(),
        i64::from(bits).into(),
        read.name.folded().into(),
        read.name.requested().into(),
    ];
    let (statement, chosen): (_, Option<Parameter>) = match read.versions {
        VersionKey::Current => (&statements::POSTGRES_PERMITTED_VERSIONS_CURRENT, None),
        VersionKey::Id(id) => (
            &statements::POSTGRES_PERMITTED_VERSION_BY_ID,
            Some(id.into()),
        ),
        VersionKey::Newest(count) => (
            &statements::POSTGRES_PERMITTED_VERSIONS_NEWEST_FIRST,
            Some(i64::from(count).into()),
        ),
    };
    let paths = read.paths.iter().map(PermissionPath::as_str);
    statement
        .bind(common.into_iter().chain(chosen), paths)
        .short()
}

fn permitted(
    versions: Result<Vec<StoredVersion>, RepositoryError>,
    stored_name: Option<Result<CredentialName, RepositoryError>>,
) -> Result<PermittedVersions, RepositoryError> {
    Ok(PermittedVersions {
        versions: versions?,
        stored_name: stored_name.transpose()?,
    })
}

/// The column of the stored name in PostgreSQL's result, before the columns of a version.
const NAME_COLUMN: usize = 4;
