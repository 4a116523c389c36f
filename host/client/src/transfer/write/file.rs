//! A file that is there when it is complete, and not before.

use std::{
    fs::{self, File, Permissions},
    io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use tempfile::NamedTempFile;
use tokio::task::spawn_blocking;

/// A file that is being written, beside its place and under another name. Only its owner may read it. It vanishes when it
/// is given up.
pub(crate) struct NewFile {
    file: NamedTempFile,
    target: PathBuf,
    may_replace: bool,
}

/// Why a file was not written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotWritten {
    /// There is a file of that name.
    #[error("{} is there: it is replaced with --force", .0.display())]
    Exists(PathBuf),
    /// What is there is not a file.
    #[error("{} is not a file", .0.display())]
    NotAFile(PathBuf),
    /// It can't be written.
    #[error("{} can't be written", target.display())]
    Failed {
        /// The file.
        target: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl NewFile {
    /// Begins a file.
    ///
    /// # Errors
    /// When it is there and may not be replaced, or its folder can't be written to.
    pub(crate) fn begin(target: &Path, may_replace: bool) -> Result<Self, NotWritten> {
        let target = target.to_owned();
        match fs::symlink_metadata(&target) {
            Ok(metadata) if !metadata.is_file() => return Err(NotWritten::NotAFile(target)),
            Ok(_) if !may_replace => return Err(NotWritten::Exists(target)),
            _ => {}
        }
        match begun(&target) {
            Ok(file) => Ok(Self {
                file,
                target,
                may_replace,
            }),
            Err(source) => Err(NotWritten::Failed { target, source }),
        }
    }

    /// What is to be in it, for writing.
    ///
    /// # Errors
    /// When the process may have no more files.
    pub(crate) fn content(&self) -> Result<File, NotWritten> {
        let content = self.file.as_file().try_clone();
        content.map_err(|source| NotWritten::Failed {
            target: self.target.clone(),
            source,
        })
    }

    /// Gives the file its name, when all of it is on the disk.
    ///
    /// # Errors
    /// When it can't be written; then nothing is left of it.
    pub(crate) async fn complete(self) -> Result<(), NotWritten> {
        let content = self.content()?;
        // It may take long, and this must be there meanwhile to be dropped, so that the file vanishes.
        let kept = spawn_blocking(move || content.sync_all()).await;
        let Self {
            file,
            target,
            may_replace,
        } = self;
        let named = kept.map_err(io::Error::other).flatten().and_then(|()| {
            let named = if may_replace {
                file.persist(&target)
            } else {
                file.persist_noclobber(&target)
            };
            named.map_err(|refused| refused.error)?;
            File::open(folder_of(&target))?.sync_all()
        });
        match named {
            Ok(()) => Ok(()),
            Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {
                Err(NotWritten::Exists(target))
            }
            Err(source) => Err(NotWritten::Failed { target, source }),
        }
    }
}

fn begun(target: &Path) -> io::Result<NamedTempFile> {
    tempfile::Builder::new()
        .prefix(".keywright-export-")
        .permissions(Permissions::from_mode(OWNER_ONLY))
        .tempfile_in(folder_of(target))
}

fn folder_of(target: &Path) -> &Path {
    match target.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

const OWNER_ONLY: u32 = 0o600;

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    #[tokio::test]
    async fn a_file_has_its_name_when_it_is_complete_and_is_its_owners_alone() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("export");
        let file = NewFile::begin(&target, false).unwrap();
        file.content().unwrap().write_all(b"whole").unwrap();
        assert!(!target.exists());
        file.complete().await.unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"whole");
        let mode = fs::metadata(&target).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, OWNER_ONLY);
        assert_eq!(names(folder.path()), ["export"]);
    }

    #[test]
    fn nothing_is_left_of_a_file_that_is_given_up() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("export");
        let file = NewFile::begin(&target, false).unwrap();
        file.content().unwrap().write_all(b"half").unwrap();
        drop(file);
        assert!(names(folder.path()).is_empty());
    }

    #[tokio::test]
    async fn what_is_there_is_replaced_only_when_that_is_wanted() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("export");
        let raced = NewFile::begin(&target, false).unwrap();
        fs::write(&target, "before").unwrap();
        fs::set_permissions(&target, Permissions::from_mode(0o644)).unwrap();
        let refused = raced.complete().await;
        assert!(matches!(refused, Err(NotWritten::Exists(_))));
        let refused = NewFile::begin(&target, false);
        assert!(matches!(refused.err(), Some(NotWritten::Exists(_))));
        assert_eq!(fs::read(&target).unwrap(), b"before");
        let replacing = NewFile::begin(&target, true).unwrap();
        replacing.complete().await.unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"");
        let mode = fs::metadata(&target).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, OWNER_ONLY);
        let refused = NewFile::begin(folder.path(), true);
        assert!(matches!(refused.err(), Some(NotWritten::NotAFile(_))));
        assert_eq!(names(folder.path()), ["export"]);
    }
}
