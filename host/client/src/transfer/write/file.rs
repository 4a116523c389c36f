//! A file that is there when it is complete, and not before.

use std::{
    fs::{self, File, Permissions},
    io::{self, BufWriter, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use tempfile::NamedTempFile;

/// A file that is being written, beside its place and under another name. Only its owner may read it. It vanishes when it
/// is given up.
pub(crate) struct NewFile {
    output: BufWriter<NamedTempFile>,
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
                output: BufWriter::new(file),
                target,
                may_replace,
            }),
            Err(source) => Err(NotWritten::Failed { target, source }),
        }
    }

    /// Gives the file its name, when all of it is on the disk.
    ///
    /// # Errors
    /// When it can't be written; then nothing is left of it.
    pub(crate) fn complete(self) -> Result<(), NotWritten> {
        let Self {
            output,
            target,
            may_replace,
        } = self;
        let named = output
            .into_inner()
            .map_err(io::IntoInnerError::into_error)
            .and_then(|file| {
                file.as_file().sync_all()?;
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

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.output.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
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
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    #[test]
    fn a_file_has_its_name_when_it_is_complete_and_is_its_owners_alone() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("export");
        let mut file = NewFile::begin(&target, false).unwrap();
        file.write_all(b"whole").unwrap();
        assert!(!target.exists());
        file.complete().unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"whole");
        let mode = fs::metadata(&target).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, OWNER_ONLY);
        assert_eq!(names(folder.path()), ["export"]);
    }

    #[test]
    fn nothing_is_left_of_a_file_that_is_given_up() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("export");
        let mut file = NewFile::begin(&target, false).unwrap();
        file.write_all(b"half").unwrap();
        file.flush().unwrap();
        drop(file);
        assert!(names(folder.path()).is_empty());
    }

    #[test]
    fn what_is_there_is_replaced_only_when_that_is_wanted() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("export");
        let raced = NewFile::begin(&target, false).unwrap();
        fs::write(&target, "before").unwrap();
        fs::set_permissions(&target, Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(raced.complete(), Err(NotWritten::Exists(_))));
        let refused = NewFile::begin(&target, false);
        assert!(matches!(refused.err(), Some(NotWritten::Exists(_))));
        assert_eq!(fs::read(&target).unwrap(), b"before");
        NewFile::begin(&target, true).unwrap().complete().unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"");
        let mode = fs::metadata(&target).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, OWNER_ONLY);
        let refused = NewFile::begin(folder.path(), true);
        assert!(matches!(refused.err(), Some(NotWritten::NotAFile(_))));
        assert_eq!(names(folder.path()), ["export"]);
    }
}
