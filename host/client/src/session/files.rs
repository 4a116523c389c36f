//! Files that are for the eyes of their owner.

use std::{
    fs::{self, DirBuilder, File},
    io,
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::{Path, PathBuf},
};

use etcetera::{BaseStrategy, base_strategy};
use zeroize::Zeroizing;

use crate::new_file::{Readers, write_whole};

/// The folder with the settings and the session.
#[derive(Clone, Debug)]
pub struct Directory(PathBuf);

/// A file could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{} can't be {doing}: {cause}", path.display())]
pub struct FileFailure {
    /// Which file.
    pub path: PathBuf,
    doing: &'static str,
    cause: io::Error,
}

impl Directory {
    /// The folder that the environment names, or else the platform's.
    #[must_use]
    pub fn of_environment() -> Option<Self> {
        if let Some(named) = std::env::var_os("KEYWRIGHT_CLIENT_DIRECTORY")
            && !named.is_empty()
        {
            return Some(Self(named.into()));
        }
        let platform = base_strategy::choose_native_strategy().ok()?;
        Some(Self(platform.config_dir().join("keywright")))
    }

    /// This folder.
    #[must_use]
    pub fn at(path: PathBuf) -> Self {
        Self(path)
    }

    /// The path of a file in it.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Reads a file in it, when it is there.
    pub(super) fn read(&self, name: &str) -> Result<Option<Zeroizing<String>>, FileFailure> {
        let path = self.file(name);
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Some(Zeroizing::new(text))),
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(cause) => Err(FileFailure::new(&path, "read", cause)),
        }
    }

    /// Makes the folder, where there is none.
    pub(super) fn make(&self) -> Result<(), FileFailure> {
        let failed = |cause| FileFailure::new(&self.0, "made", cause);
        let mut folder = DirBuilder::new();
        folder.recursive(true).mode(0o700);
        folder.create(&self.0).map_err(failed)
    }

    /// Writes a file in it, which is there whole or not at all, and which its owner alone may read.
    pub(super) fn write(&self, name: &str, bytes: &[u8]) -> Result<(), FileFailure> {
        write_whole(&self.file(name), bytes, Readers::Owner)
    }

    /// Whether the mode of a file in it gives others than its owner any right.
    pub(super) fn is_open_to_others(&self, name: &str) -> bool {
        let metadata = fs::metadata(self.file(name));
        metadata.is_ok_and(|metadata| metadata.permissions().mode() & OTHERS != 0)
    }

    /// Waits until no other run of the program changes what is in it, and keeps them waiting until what is returned is
    /// dropped. Where the file system has no locks, nobody waits.
    pub(super) fn turn(&self) -> Option<File> {
        let folder = File::open(&self.0).ok()?;
        folder.lock().ok().map(|()| folder)
    }

    /// Deletes a file in it, or what a link in it leads to. False when there is none.
    pub(super) fn delete(&self, name: &str) -> Result<bool, FileFailure> {
        let path = self.file(name);
        match fs::canonicalize(&path).and_then(fs::remove_file) {
            Ok(()) => Ok(true),
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(cause) => Err(FileFailure::new(&path, "deleted", cause)),
        }
    }
}

impl FileFailure {
    /// Whether what is there is no text.
    pub(super) fn is_not_text(&self) -> bool {
        self.cause.kind() == io::ErrorKind::InvalidData
    }

    pub(crate) fn new(path: &Path, doing: &'static str, cause: io::Error) -> Self {
        Self {
            path: path.to_owned(),
            doing,
            cause,
        }
    }
}

/// What group and others may do.
const OTHERS: u32 = 0o077;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_for_their_owner_alone_even_where_others_could_read_what_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let directory = Directory::at(folder.path().join("a/keywright"));
        assert!(directory.read("session.json").unwrap().is_none());
        directory.make().unwrap();
        directory.write("session.json", b"one").unwrap();
        let path = directory.file("session.json");
        assert!(!directory.is_open_to_others("session.json"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(directory.is_open_to_others("session.json"));
        directory.write("session.json", b"two").unwrap();

        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o600);
        assert_eq!(mode(path.parent().unwrap()), 0o700);
        assert_eq!(
            directory.read("session.json").unwrap().unwrap().as_str(),
            "two"
        );
        assert!(directory.delete("session.json").unwrap());
        assert!(!directory.delete("session.json").unwrap());
    }
}
