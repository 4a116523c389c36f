//! Backing up a file of SQLite while servers use it.
//!
//! `vacuum into` copies what one read transaction sees. Readers and writers go on meanwhile; what they write waits in the
//! write-ahead log until the copy is done. The copy has nothing of what was deleted, and no unused pages. The alternative,
//! SQLite's back-up interface, begins anew whenever another process writes, and is not to be had through sqlx.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    time::Duration,
};

use keywright_core::ports::RepositoryFailure;
use tempfile::{NamedTempFile, TempDir};

use crate::{
    DatabaseUnusable, SqliteOptions,
    check::sqlite_integrity,
    connections::Connections,
    migrations::{self, AppliedMigration},
    row::{column, count},
    sqlite::{self, creation::MARKER_END},
    statement::statement,
};

/// What a copy holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackedUp {
    /// The credentials.
    pub credentials: u64,
    /// Their versions.
    pub versions: u64,
    /// The permissions.
    pub permissions: u64,
    /// The size of its file, in bytes.
    pub bytes: u64,
}

/// Why there is no copy of which it is sure that it lasts. But for [`BackupFailed::NotSynchronised`], nothing of one is left.
#[derive(Debug, thiserror::Error)]
pub enum BackupFailed {
    /// The copy is not what the database is.
    #[error("the copy can't be used: {0}")]
    CopyUnusable(String),
    /// The copy could not be read.
    #[error("the copy can't be read")]
    CopyNotRead(#[source] RepositoryFailure),
    /// The copy is in its place, and whole; that it is there may be forgotten when the machine loses its power.
    #[error("{} is there and whole, but its folder can't be synchronised with the disk", .path.display())]
    NotSynchronised {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The database can't be read.
    #[error("the database can't be copied")]
    NotCopied(#[source] RepositoryFailure),
    /// The database can't be used.
    #[error(transparent)]
    Source(#[from] DatabaseUnusable),
    /// There is something where the copy would be.
    #[error("{} exists already, and is not replaced", .0.display())]
    TargetExists(PathBuf),
    /// The copy would be put in the place of the database.
    #[error("{} is the database itself, or one of its files", .0.display())]
    TargetIsSource(PathBuf),
    /// What the copy would be put in the place of is no file.
    #[error("{} is no file", .0.display())]
    TargetIsNoFile(PathBuf),
    /// The copy can't be written.
    #[error("{} can't be written", .path.display())]
    TargetNotWritten {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
}

/// Copies a database to a file that only its owner may read, as it is at one moment after this was called. When this
/// returns, the copy was read whole and found sound, and is on disk.
///
/// `progressed` is told how many bytes are copied, of how many. Only with `may_replace` is a file replaced that is there.
///
/// # Errors
/// Why there is no copy, or none of which it is sure that it lasts.
pub async fn back_up(
    source: &SqliteOptions,
    target: &Path,
    may_replace: bool,
    progressed: impl FnMut(u64, u64),
) -> Result<BackedUp, BackupFailed> {
    let reader = sqlite::open_file(source)?;
    let applied = migrations::applied(&reader);
    let applied = applied.await.map_err(BackupFailed::NotCopied)?;
    if applied.is_empty() {
        let database = source.path.display().to_string();
        return Err(DatabaseUnusable::SchemaAbsent { database }.into());
    }
    let target = Target::new(target, &source.path, may_replace)?;
    let partial = Partial::beside(&target)?;
    copy(&reader, partial.path(), progressed).await?;
    let counted = verify(source, partial.path(), &applied).await?;
    reader.close().await;
    let bytes = partial.put_in_place(&target)?;
    Ok(BackedUp { bytes, ..counted })
}

/// Where the copy is to be.
struct Target {
    path: PathBuf,
    folder: PathBuf,
    may_replace: bool,
}

impl Target {
    fn new(path: &Path, source: &Path, may_replace: bool) -> Result<Self, BackupFailed> {
        let not_written = |source| BackupFailed::TargetNotWritten {
            path: path.to_owned(),
            source,
        };
        let path = std::path::absolute(path).map_err(not_written)?;
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(BackupFailed::TargetIsNoFile(path));
        };
        // The folder may be reached by several ways.
        let folder = folder.canonicalize().map_err(not_written)?;
        let path = folder.join(name);
        refuse_source(&path, source)?;
        match fs::symlink_metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(not_written(error)),
            Ok(_) if !may_replace => return Err(BackupFailed::TargetExists(path)),
            Ok(found) if found.is_file() => {}
            Ok(_) => return Err(BackupFailed::TargetIsNoFile(path)),
        }
        Ok(Self {
            path,
            folder,
            may_replace,
        })
    }

    fn not_written(&self, source: io::Error) -> BackupFailed {
        BackupFailed::TargetNotWritten {
            path: self.path.clone(),
            source,
        }
    }
}

fn refuse_source(target: &Path, source: &Path) -> Result<(), BackupFailed> {
    let Ok(source) = source.canonicalize() else {
        return Ok(());
    };
    let files = FILE_ENDS.map(|end| {
        let mut file = source.clone().into_os_string();
        file.push(end);
        PathBuf::from(file)
    });
    let identity = |path: &Path| fs::metadata(path).map(|file| (file.dev(), file.ino())).ok();
    let target_identity = identity(target);
    let is_source = files.iter().any(|file| {
        file == target || (target_identity.is_some() && identity(file) == target_identity)
    });
    if is_source {
        return Err(BackupFailed::TargetIsSource(target.to_owned()));
    }
    Ok(())
}

/// A copy that is not complete: in a folder of its own, with which it goes.
struct Partial {
    file: NamedTempFile,
    /// After the file, so that it goes after it.
    _folder: TempDir,
}

impl Partial {
    /// In the folder of the target, so that it can be renamed to it.
    fn beside(target: &Target) -> Result<Self, BackupFailed> {
        let made = || {
            let folder = tempfile::Builder::new()
                .prefix(".keywright-backup-")
                .permissions(fs::Permissions::from_mode(MODE_FOLDER))
                .tempdir_in(&target.folder)?;
            // SQLite takes a file that is there when it is empty, and leaves its mode.
            let file = tempfile::Builder::new()
                .permissions(fs::Permissions::from_mode(MODE_FILE))
                .tempfile_in(folder.path())?;
            Ok(Self {
                file,
                _folder: folder,
            })
        };
        made().map_err(|source| target.not_written(source))
    }

    fn path(&self) -> &Path {
        self.file.path()
    }

    /// Has it on disk, and then under its name. Returns its size in bytes.
    fn put_in_place(self, target: &Target) -> Result<u64, BackupFailed> {
        let not_written = |source| target.not_written(source);
        self.file.as_file().sync_all().map_err(not_written)?;
        let metadata = self.file.as_file().metadata().map_err(not_written)?;
        let persisted = if target.may_replace {
            self.file.persist(&target.path)
        } else {
            self.file.persist_noclobber(&target.path)
        };
        persisted.map_err(|refused| match refused.error.kind() {
            io::ErrorKind::AlreadyExists => BackupFailed::TargetExists(target.path.clone()),
            _ => not_written(refused.error),
        })?;
        let synchronised = File::open(&target.folder).and_then(|folder| folder.sync_all());
        synchronised.map_err(|source| BackupFailed::NotSynchronised {
            path: target.path.clone(),
            source,
        })?;
        Ok(metadata.len())
    }
}

/// Copies the database, and tells how far that is by the size of the copy.
async fn copy(
    reader: &Connections,
    to: &Path,
    mut progressed: impl FnMut(u64, u64),
) -> Result<(), BackupFailed> {
    let path = to.to_str().ok_or_else(|| {
        BackupFailed::CopyUnusable("the name of its folder is not UTF-8".to_owned())
    })?;
    let size = reader.fetch_optional(statement(statements::SIZE));
    let size = size.await.map_err(BackupFailed::NotCopied)?;
    let size = size.map(|row| column!(row, "pragma", "bytes")).transpose();
    let total = count(size.map_err(BackupFailed::NotCopied)?.unwrap_or_default());
    progressed(0, total);
    let copying = reader.fetch_all(statement(statements::COPY).bind(path).not_persistent());
    tokio::pin!(copying);
    loop {
        match tokio::time::timeout(PROGRESS_INTERVAL, &mut copying).await {
            Ok(copied) => {
                copied.map_err(BackupFailed::NotCopied)?;
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

/// Reads the copy whole, and counts what is in it.
async fn verify(
    source: &SqliteOptions,
    copy: &Path,
    applied: &[AppliedMigration],
) -> Result<BackedUp, BackupFailed> {
    let options = SqliteOptions {
        path: copy.to_owned(),
        ..source.clone()
    };
    let reader = sqlite::open_file(&options)?;
    let read = verify_open(&reader, applied).await;
    reader.close().await;
    read
}

async fn verify_open(
    reader: &Connections,
    applied: &[AppliedMigration],
) -> Result<BackedUp, BackupFailed> {
    let damage = sqlite_integrity(reader).await;
    if let Some(line) = damage.map_err(BackupFailed::CopyNotRead)?.first() {
        return Err(BackupFailed::CopyUnusable(line.clone()));
    }
    let copied = migrations::applied(reader).await;
    if copied.map_err(BackupFailed::CopyNotRead)? != applied {
        let what = "its schema changed while it was made".to_owned();
        return Err(BackupFailed::CopyUnusable(what));
    }
    let counts = reader.fetch_optional(statement(statements::COUNTS)).await;
    let counts = counts.and_then(|row| {
        let row = row.ok_or(RepositoryFailure::Inconsistent("credential"))?;
        Ok(BackedUp {
            credentials: count(column!(row, "credential", "credentials")?),
            versions: count(column!(row, "credential_version", "versions")?),
            permissions: count(column!(row, "permission", "permissions")?),
            bytes: 0,
        })
    });
    counts.map_err(BackupFailed::CopyNotRead)
}

/// What SQLite and this crate add to the name of a database for its other files.
const FILE_ENDS: [&str; 5] = ["", "-wal", "-shm", "-journal", MARKER_END];

const MODE_FILE: u32 = 0o600;
const MODE_FOLDER: u32 = 0o700;

/// How often it is told how far the copy is.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(250);

mod statements {
    //! The SQL. Reading everything is meant.

    /// The bytes that are in use.
    pub(super) const SIZE: &str = "
        select (page_count - freelist_count) * page_size as bytes
        from pragma_page_count, pragma_freelist_count, pragma_page_size";

    pub(super) const COPY: &str = "vacuum into $1";

    pub(super) const COUNTS: &str = "
        select (select count(*) from credential) as credentials,
            (select count(*) from credential_version) as versions,
            (select count(*) from permission) as permissions";
}
