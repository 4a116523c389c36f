//! Files that are for the eyes of their owner.

use std::{
    fs::{self, DirBuilder},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::{Path, PathBuf},
};

use etcetera::{BaseStrategy, base_strategy};
use tempfile::NamedTempFile;
use zeroize::Zeroizing;

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

    /// Writes a file in it, which is there whole or not at all.
    pub(super) fn write(&self, name: &str, bytes: &[u8]) -> Result<(), FileFailure> {
        let failed = |cause| FileFailure::new(&self.0, "made", cause);
        let mut folder = DirBuilder::new();
        folder.recursive(true).mode(0o700);
        folder.create(&self.0).map_err(failed)?;
        write_private(&self.file(name), bytes)
    }

    /// Deletes a file in it. False when there is none.
    pub(super) fn delete(&self, name: &str) -> Result<bool, FileFailure> {
        let path = self.file(name);
        match fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(cause) => Err(FileFailure::new(&path, "deleted", cause)),
        }
    }
}

impl FileFailure {
    pub(crate) fn new(path: &Path, doing: &'static str, cause: io::Error) -> Self {
        Self {
            path: path.to_owned(),
            doing,
            cause,
        }
    }
}

/// Writes a file of mode 0600, whatever was there before. It is there whole or not at all.
pub(crate) fn write_private(path: &Path, bytes: &[u8]) -> Result<(), FileFailure> {
    let failed = |cause| FileFailure::new(path, "written", cause);
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let mut file = NamedTempFile::new_in(folder).map_err(failed)?;
    file.as_file()
        .set_permissions(fs::Permissions::from_mode(0o600))
        .map_err(failed)?;
    file.write_all(bytes).map_err(failed)?;
    file.as_file().sync_all().map_err(failed)?;
    file.persist(path).map_err(|cause| failed(cause.error))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_for_their_owner_alone_even_where_others_could_read_what_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let directory = Directory::at(folder.path().join("a/keywright"));
        assert!(directory.read("session.json").unwrap().is_none());
        directory.write("session.json", b"one").unwrap();
        let path = directory.file("session.json");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
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

    #[test]
    fn a_file_that_can_t_be_written_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("absent/file");
        let failure = write_private(&path, b"x").unwrap_err();
        assert!(failure.to_string().contains("absent/file"));
    }
}
