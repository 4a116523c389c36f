//! The creation of a database file, which must not silently happen a second time.
//!
//! A marker, `<file>.created`, is next to each database. A server writes it once the file has its schema. If the marker exists
//! without the database, the database was moved or deleted, or its volume is not mounted: creating an empty one would look like
//! a loss of all data.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use crate::{SqliteOptions, database::DatabaseUnusable};

/// Creates the file if it is absent and may be created. Only its owner may access it. SQLite gives its journals the same mode.
///
/// # Errors
/// If the file is absent or empty and must not be created, or if it can't be created.
pub(super) fn create_if_new(options: &SqliteOptions) -> Result<(), DatabaseUnusable> {
    require_creatable(options)?;
    let path = &options.path;
    let created = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(MODE_PRIVATE)
        .open(path);
    match created {
        Ok(_) => {
            tracing::warn!(storage.file = %path.display(), "created a new and empty database");
            Ok(())
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(source) => Err(DatabaseUnusable::FileNotCreated {
            path: path.clone(),
            source,
        }),
    }
}

/// Refuses an absent or empty file that must not be created.
pub(super) fn require_creatable(options: &SqliteOptions) -> Result<(), DatabaseUnusable> {
    let path = &options.path;
    // Checked before the file: the marker is written last, so an empty file next to a marker has lost its content.
    let marker = marker(path);
    let was_created = exists(&marker);
    let has_content = match fs::metadata(path) {
        Ok(metadata) => metadata.len() > 0,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let log = with_end(path, "-wal");
            if fs::metadata(&log).is_ok_and(|log| log.len() > 0) {
                let path = path.clone();
                return Err(DatabaseUnusable::LogWithoutFile { path, log });
            }
            false
        }
        // Opening the file reports this error.
        Err(_) => true,
    };
    if has_content {
        return Ok(());
    }
    let path = path.clone();
    if was_created {
        return Err(DatabaseUnusable::FileVanished { path, marker });
    }
    if !options.may_create {
        return Err(DatabaseUnusable::FileNotToBeCreated { path });
    }
    Ok(())
}

/// Writes the marker, unless it exists.
pub(super) fn mark_as_created(path: &Path) -> io::Result<()> {
    let marker = marker(path);
    if exists(&marker) {
        return Ok(());
    }
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(MODE_PRIVATE)
        .open(&marker)?;
    file.write_all(MARKER.as_bytes())?;
    file.sync_all()?;
    let folder = marker
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// The path of a database's marker.
pub(crate) fn marker(path: &Path) -> PathBuf {
    with_end(path, MARKER_END)
}

fn with_end(path: &Path, end: &str) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(end);
    path.into()
}

/// `true` if it can't be determined, so that nothing is created by mistake.
fn exists(path: &Path) -> bool {
    path.try_exists().unwrap_or(true)
}

const MODE_PRIVATE: u32 = 0o600;

/// The suffix of a marker's name, after the name of the database.
pub(crate) const MARKER_END: &str = ".created";

const MARKER: &str = "\
Keywright created the database next to this file.
While this file exists, a server refuses to start if the database is missing or empty.
To start with a new, empty database, delete this file.
";
