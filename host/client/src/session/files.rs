//! Files that only their owner can read.

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

/// A file can't be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{} can't be {doing}: {cause}", path.display())]
pub struct FileFailure {
    /// The path of the file.
    pub path: PathBuf,
    doing: &'static str,
    cause: io::Error,
}

impl Directory {
    /// Returns the folder named by `KEYWRIGHT_CLIENT_DIRECTORY`, or the platform's default.
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

    /// Uses this folder.
    #[must_use]
    pub fn at(path: PathBuf) -> Self {
        Self(path)
    }

    /// Returns the path of a file in the folder.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Reads a file in the folder. `None` if it does not exist.
    pub(super) fn read(&self, name: &str) -> Result<Option<Zeroizing<String>>, FileFailure> {
        let path = self.file(name);
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Some(Zeroizing::new(text))),
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(cause) => Err(FileFailure::new(&path, "read", cause)),
        }
    }

    /// Creates the folder if it does not exist.
    pub(super) fn create(&self) -> Result<(), FileFailure> {
        let failed = |cause| FileFailure::new(&self.0, "created", cause);
        let mut folder = DirBuilder::new();
        folder.recursive(true).mode(0o700);
        folder.create(&self.0).map_err(failed)
    }

    /// Writes a file in the folder atomically. Only its owner may read it.
    pub(super) fn write(&self, name: &str, bytes: &[u8]) -> Result<(), FileFailure> {
        write_whole(&self.file(name), bytes, Readers::Owner)
    }

    /// Whether group or others have any permission on a file in the folder.
    pub(super) fn is_open_to_others(&self, name: &str) -> bool {
        let metadata = fs::metadata(self.file(name));
        metadata.is_ok_and(|metadata| metadata.permissions().mode() & OTHERS != 0)
    }

    /// Locks the folder against other runs of the program until the returned file is dropped. `None` if the file system does not
    /// support locks.
    pub(super) fn lock(&self) -> Option<File> {
        let folder = File::open(&self.0).ok()?;
        folder.lock().ok().map(|()| folder)
    }

    /// Deletes a file in the folder, or the target of a link. `false` if it does not exist.
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
    /// Whether the file is not UTF-8.
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

/// The permission bits of group and others.
const OTHERS: u32 = 0o077;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_files_have_mode_0600_even_if_replaced_ones_had_not() {
        let folder = tempfile::tempdir().unwrap();
        let directory = Directory::at(folder.path().join("a/keywright"));
        assert!(directory.read("session.json").unwrap().is_none());
        directory.create().unwrap();
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
