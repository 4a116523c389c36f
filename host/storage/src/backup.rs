//! Backing up a SQLite file while servers use it.
//!
//! `vacuum into` copies the snapshot of one read transaction. Reads and writes continue; the writes stay in the write-ahead log
//! until the copy is complete. The copy contains no deleted data and no unused pages. The alternative, SQLite's backup
//! interface, restarts whenever another process writes.

use std::{
    fs, io,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    time::Duration,
};

use keywright_core::ports::RepositoryError;
use tempfile::{NamedTempFile, TempDir};

use crate::{
    DatabaseOpenError, SqliteOptions,
    check::sqlite_integrity,
    connections::Connections,
    migrations::{self, AppliedMigration},
    sqlite::{self, MARKER_SUFFIX, sync_folder_of},
    statement::{column, count, statement},
};

/// The contents of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackedUp {
    /// The number of credentials.
    pub credentials: u64,
    /// The number of their versions.
    pub versions: u64,
    /// The number of permissions.
    pub permissions: u64,
    /// The size of the file, in bytes.
    pub bytes: u64,
}

/// The reason why a backup failed. Except after [`BackupError::NotSynchronized`], no copy exists.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the variants mean")]
pub enum BackupError {
    #[error("the copy is unusable: {0}")]
    CopyUnusable(String),
    #[error("could not read the copy")]
    CopyNotRead(#[source] RepositoryError),
    /// The copy is complete, but a power failure may still remove its directory entry.
    #[error("{} is complete, but its folder could not be synchronized with the disk", .path.display())]
    NotSynchronized {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("could not copy the database")]
    NotCopied(#[source] RepositoryError),
    #[error(transparent)]
    Source(#[from] DatabaseOpenError),
    #[error("{} already exists; use --force to overwrite it", .0.display())]
    TargetExists(PathBuf),
    #[error("{} is the database itself or one of its files; name another file", .0.display())]
    TargetIsSource(PathBuf),
    #[error("{} is not a file; name the file to create", .0.display())]
    TargetIsNoFile(PathBuf),
    #[error("could not write {}", .path.display())]
    TargetNotWritten {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

/// Copies a snapshot of a database to a file that only its owner may read. When this returns, the whole copy is verified and on
/// disk.
///
/// `progressed` receives the number of copied bytes and their total. An existing file is only replaced with `may_replace`.
///
/// # Errors
/// If no copy was created, or if it may not survive a power failure.
pub async fn back_up(
    source: &SqliteOptions,
    target: &Path,
    may_replace: bool,
    progressed: impl FnMut(u64, u64),
) -> Result<BackedUp, BackupError> {
    let reader = sqlite::open_file(source).await?;
    let applied = migrations::applied(&reader);
    let applied = applied.await.map_err(BackupError::NotCopied)?;
    if applied.is_empty() {
        let database = source.path.display().to_string();
        return Err(DatabaseOpenError::SchemaAbsent(database).into());
    }
    let target = Target::new(target, &source.path, may_replace)?;
    let partial = Partial::next_to(&target)?;
    copy(&reader, partial.path(), progressed).await?;
    let counted = verify(source, partial.path(), &applied).await?;
    reader.close().await;
    let bytes = partial.put_in_place(&target)?;
    Ok(BackedUp { bytes, ..counted })
}

/// The path of the copy.
struct Target {
    path: PathBuf,
    folder: PathBuf,
    may_replace: bool,
}

impl Target {
    fn new(path: &Path, source: &Path, may_replace: bool) -> Result<Self, BackupError> {
        let not_written = |source| BackupError::TargetNotWritten {
            path: path.to_owned(),
            source,
        };
        let path = std::path::absolute(path).map_err(not_written)?;
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(BackupError::TargetIsNoFile(path));
        };
        // Several paths may lead to the folder.
        let folder = folder.canonicalize().map_err(not_written)?;
        let path = folder.join(name);
        refuse_source(&path, source)?;
        match fs::symlink_metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(not_written(error)),
            Ok(found) if !found.is_file() => return Err(BackupError::TargetIsNoFile(path)),
            Ok(_) if !may_replace => return Err(BackupError::TargetExists(path)),
            Ok(_) => {}
        }
        Ok(Self {
            path,
            folder,
            may_replace,
        })
    }

    fn not_written(&self, source: io::Error) -> BackupError {
        BackupError::TargetNotWritten {
            path: self.path.clone(),
            source,
        }
    }
}

fn refuse_source(target: &Path, source: &Path) -> Result<(), BackupError> {
    let Ok(source) = source.canonicalize() else {
        return Ok(());
    };
    let files = FILE_SUFFIXES.map(|suffix| {
        let mut file = source.clone().into_os_string();
        file.push(suffix);
        PathBuf::from(file)
    });
    let identity = |path: &Path| fs::metadata(path).map(|file| (file.dev(), file.ino())).ok();
    let target_identity = identity(target);
    let is_source = files.iter().any(|file| {
        file == target || (target_identity.is_some() && identity(file) == target_identity)
    });
    if is_source {
        return Err(BackupError::TargetIsSource(target.to_owned()));
    }
    Ok(())
}

/// An incomplete copy, in a folder of its own that is deleted with it.
struct Partial {
    file: NamedTempFile,
    /// Declared after the file, so that it is dropped after it.
    _folder: TempDir,
}

impl Partial {
    /// Creates the file in the target's folder, so that it can be renamed to the target.
    fn next_to(target: &Target) -> Result<Self, BackupError> {
        let made = || {
            let folder = tempfile::Builder::new()
                .prefix(".keywright-backup-")
                .permissions(fs::Permissions::from_mode(MODE_FOLDER))
                .tempdir_in(&target.folder)?;
            // SQLite accepts an existing empty file, and keeps its mode.
            let file = tempfile::Builder::new()
                .permissions(fs::Permissions::from_mode(MODE_FILE))
                .tempfile_in(folder.path())?;
            Ok(Self {
                file,
                _folder: folder,
            })
        };
        made().map_err(|source| target.not_written(without_path(source)))
    }

    fn path(&self) -> &Path {
        self.file.path()
    }

    /// Flushes the copy to disk and renames it to its target. Returns its size in bytes.
    fn put_in_place(self, target: &Target) -> Result<u64, BackupError> {
        let not_written = |source| target.not_written(source);
        self.file.as_file().sync_all().map_err(not_written)?;
        let metadata = self.file.as_file().metadata().map_err(not_written)?;
        let persisted = if target.may_replace {
            self.file.persist(&target.path)
        } else {
            self.file.persist_noclobber(&target.path)
        };
        persisted.map_err(|refused| match refused.error.kind() {
            io::ErrorKind::AlreadyExists => BackupError::TargetExists(target.path.clone()),
            _ => not_written(refused.error),
        })?;
        sync_folder_of(&target.path).map_err(|source| BackupError::NotSynchronized {
            path: target.path.clone(),
            source,
        })?;
        Ok(metadata.len())
    }
}

/// Removes the name of the temporary file, which `tempfile` appends to its errors.
fn without_path(error: io::Error) -> io::Error {
    match error.to_string().split_once(" at path ") {
        Some((reason, _)) => io::Error::new(error.kind(), reason),
        None => error,
    }
}

/// Copies the database. Reports the size of the copy as progress.
async fn copy(
    reader: &Connections,
    to: &Path,
    mut progressed: impl FnMut(u64, u64),
) -> Result<(), BackupError> {
    let path = to.to_str().ok_or_else(|| {
        BackupError::CopyUnusable("the name of its folder is not UTF-8".to_owned())
    })?;
    let size = reader.fetch_optional(statement(statements::SIZE));
    let size = size.await.map_err(BackupError::NotCopied)?;
    let size = size.map(|row| column!(row, "pragma", "bytes")).transpose();
    let total = count(size.map_err(BackupError::NotCopied)?.unwrap_or_default());
    progressed(0, total);
    let copying = reader.fetch_all(statement(statements::COPY).bind(path));
    tokio::pin!(copying);
    loop {
        match tokio::time::timeout(PROGRESS_INTERVAL, &mut copying).await {
            Ok(copied) => {
                copied.map_err(BackupError::NotCopied)?;
                progressed(total, total);
                return Ok(());
            }
            Err(_) => progressed(
                fs::metadata(to).map_or(0, |file| file.len()).min(total),
                total,
            ),
        }
    }
}

/// Reads the whole copy, and counts its contents.
async fn verify(
    source: &SqliteOptions,
    copy: &Path,
    applied: &[AppliedMigration],
) -> Result<BackedUp, BackupError> {
    let options = SqliteOptions {
        path: copy.to_owned(),
        ..source.clone()
    };
    let reader = sqlite::open_file(&options).await?;
    let read = verify_open(&reader, applied).await;
    reader.close().await;
    read
}

async fn verify_open(
    reader: &Connections,
    applied: &[AppliedMigration],
) -> Result<BackedUp, BackupError> {
    let damage = sqlite_integrity(reader).await;
    if let Some(line) = damage.map_err(BackupError::CopyNotRead)?.first() {
        return Err(BackupError::CopyUnusable(line.clone()));
    }
    let copied = migrations::applied(reader).await;
    if copied.map_err(BackupError::CopyNotRead)? != applied {
        let what = "its schema changed during the backup".to_owned();
        return Err(BackupError::CopyUnusable(what));
    }
    let counts = reader.fetch_optional(statement(statements::COUNTS)).await;
    let counts = counts.and_then(|row| {
        let row = row.ok_or(RepositoryError::Inconsistent("credential"))?;
        Ok(BackedUp {
            credentials: count(column!(row, "credential", "credentials")?),
            versions: count(column!(row, "credential_version", "versions")?),
            permissions: count(column!(row, "permission", "permissions")?),
            bytes: 0,
        })
    });
    counts.map_err(BackupError::CopyNotRead)
}

/// The suffixes that SQLite and this crate append to the name of a database for its other files.
const FILE_SUFFIXES: [&str; 5] = ["", "-wal", "-shm", "-journal", MARKER_SUFFIX];

const MODE_FILE: u32 = 0o600;
const MODE_FOLDER: u32 = 0o700;

/// The interval between reports of progress.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(250);

mod statements {
    //! The SQL. It reads the whole database on purpose.

    /// The number of bytes in use.
    pub(super) const SIZE: &str = "
        select (page_count - freelist_count) * page_size as bytes
        from pragma_page_count, pragma_freelist_count, pragma_page_size";

    pub(super) const COPY: &str = "vacuum into $1";

    pub(super) const COUNTS: &str = "
        select (select count(*) from credential) as credentials,
            (select count(*) from credential_version) as versions,
            (select count(*) from permission) as permissions";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_do_not_name_the_temporary_file() {
        let folder = tempfile::tempdir().unwrap();
        let error = tempfile::tempdir_in(folder.path().join("missing")).unwrap_err();
        assert!(error.to_string().contains("missing"), "{error}");
        let error = without_path(error);
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(!error.to_string().contains("missing"), "{error}");
    }
}
