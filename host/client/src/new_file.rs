//! Files that are there whole, or as they were before.

use std::{
    fs::{self, File, OpenOptions, Permissions},
    io::{self, ErrorKind, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use tempfile::{NamedTempFile, TempPath};
use tokio::task::spawn_blocking;

use crate::session::FileFailure;

/// A file that is being written, beside its place and under another name. It vanishes when it is given up.
///
/// Where a symbolic link has the name, what it leads to is replaced, and the link stays. Where nothing may be replaced, the
/// link is refused: another user may have created it, to choose where the file goes. What is there and is no file, as a
/// device or a pipe, has no place that another file could take: it is written to as it is.
pub(crate) struct NewFile {
    content: File,
    /// The name that it has meanwhile; none where the target itself is written to.
    name: Option<TempPath>,
    target: PathBuf,
    may_replace: bool,
}

/// Who may read a new file, whatever its mode was before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Readers {
    /// Its owner alone.
    Owner,
    /// Everybody, as far as the process's own mask lets it be.
    All,
}

/// Why a file was not written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotWritten {
    /// There is a file of that name.
    #[error("{} is there: it is replaced with --force", .0.display())]
    Exists(PathBuf),
    /// A symbolic link has that name.
    #[error("{} is a symbolic link; use --force to write to the file that it leads to", .0.display())]
    IsLink(PathBuf),
    /// It can't be written.
    #[error(transparent)]
    Failed(#[from] FileFailure),
}

/// Writes a file that is there whole or as it was, in the place of what was there.
///
/// # Errors
/// When it can't be written; then nothing is left of it.
pub(crate) fn write_whole(
    target: &Path,
    bytes: &[u8],
    readers: Readers,
) -> Result<(), FileFailure> {
    let write = || {
        let new = NewFile::begun(target, true, readers)?;
        let mut content = new.content.try_clone()?;
        content.write_all(bytes)?;
        if new.name.is_some() {
            content.sync_all()?;
        }
        new.named()
    };
    write().map_err(|cause| FileFailure::new(target, "written", cause))
}

impl NewFile {
    /// Begins a file that its owner alone may read.
    ///
    /// # Errors
    /// When it is there and may not be replaced, or its folder can't be written to.
    pub(crate) fn begin(target: &Path, may_replace: bool) -> Result<Self, NotWritten> {
        let refused = |cause| not_written(target, cause);
        if !may_replace && is_link(target).map_err(refused)? {
            return Err(NotWritten::IsLink(target.to_owned()));
        }
        Self::begun(target, may_replace, Readers::Owner).map_err(refused)
    }

    /// What is to be in it, for writing.
    ///
    /// # Errors
    /// When the process may have no more files.
    pub(crate) fn content(&self) -> Result<File, NotWritten> {
        let content = self.content.try_clone();
        content.map_err(|cause| not_written(&self.target, cause))
    }

    /// Gives the file its name, when all of it is on the disk.
    ///
    /// # Errors
    /// When it can't be written; then nothing is left of it.
    pub(crate) async fn complete(self) -> Result<(), NotWritten> {
        let target = self.target.clone();
        if self.name.is_some() {
            let content = self.content()?;
            // It may take long, and this must be there meanwhile to be dropped, so that the file vanishes.
            let kept = spawn_blocking(move || content.sync_all()).await;
            let kept = kept.map_err(io::Error::other).flatten();
            kept.map_err(|cause| not_written(&target, cause))?;
        }
        self.named().map_err(|cause| not_written(&target, cause))
    }

    fn begun(target: &Path, may_replace: bool, readers: Readers) -> io::Result<Self> {
        let place = match place_of(target)? {
            Place::Taken(_) if !may_replace => return Err(ErrorKind::AlreadyExists.into()),
            // The link came after it was looked for.
            Place::Free(path) if !may_replace && path != target => {
                return Err(ErrorKind::AlreadyExists.into());
            }
            Place::Taken(path) | Place::Free(path) => path,
            Place::Stream => {
                // Never from its beginning: a stream that others write to as well would lose what they wrote.
                return Ok(Self {
                    content: OpenOptions::new().append(true).open(target)?,
                    name: None,
                    target: target.to_owned(),
                    may_replace,
                });
            }
        };
        let (content, name) = beside(&place, readers)?.into_parts();
        Ok(Self {
            content,
            name: Some(name),
            target: place,
            may_replace,
        })
    }

    fn named(self) -> io::Result<()> {
        let Some(name) = self.name else {
            return Ok(());
        };
        let named = if self.may_replace {
            name.persist(&self.target)
        } else {
            name.persist_noclobber(&self.target)
        };
        named.map_err(|refused| refused.error)?;
        File::open(folder_of(&self.target))?.sync_all()
    }
}

/// What stands at a path.
enum Place {
    /// Nothing: a file can have this path, behind all links.
    Free(PathBuf),
    /// A file, which has this path behind all links.
    Taken(PathBuf),
    /// What is written to as it is.
    Stream,
}

fn place_of(target: &Path) -> io::Result<Place> {
    let mut path = target.to_owned();
    for _ in 0..LINKS_MAX {
        match fs::symlink_metadata(&path) {
            Ok(metadata) if metadata.is_symlink() => {
                let folder = fs::canonicalize(folder_of(&path))?;
                // A link of the kernel's own, as `/dev/stdout` leads to one, stands for what is open and not for a path.
                if folder.starts_with(KERNEL_FILES) {
                    return Ok(Place::Stream);
                }
                path = folder.join(fs::read_link(&path)?);
            }
            Ok(metadata) if metadata.is_file() => return Ok(Place::Taken(path)),
            Ok(metadata) if metadata.is_dir() => return Err(ErrorKind::IsADirectory.into()),
            Ok(_) => return Ok(Place::Stream),
            Err(cause) if cause.kind() == ErrorKind::NotFound => return Ok(Place::Free(path)),
            Err(cause) => return Err(cause),
        }
    }
    Err(io::Error::other("too many symbolic links"))
}

/// Whether a path is that of a symbolic link that another user could have created. Links of the system itself lead to open files.
fn is_link(path: &Path) -> io::Result<bool> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_symlink() => {
            let folder = fs::canonicalize(folder_of(path))?;
            Ok(folder != Path::new(DEVICES) && !folder.starts_with(KERNEL_FILES))
        }
        Ok(_) => Ok(false),
        Err(cause) if cause.kind() == ErrorKind::NotFound => Ok(false),
        Err(cause) => Err(cause),
    }
}

fn beside(target: &Path, readers: Readers) -> io::Result<NamedTempFile> {
    let mode = match readers {
        Readers::Owner => 0o600,
        Readers::All => 0o644,
    };
    tempfile::Builder::new()
        .prefix(".keywright-")
        .permissions(Permissions::from_mode(mode))
        .tempfile_in(folder_of(target))
}

fn folder_of(target: &Path) -> &Path {
    match target.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

fn not_written(target: &Path, cause: io::Error) -> NotWritten {
    if cause.kind() == ErrorKind::AlreadyExists {
        NotWritten::Exists(target.to_owned())
    } else {
        FileFailure::new(target, "written", cause).into()
    }
}

/// How many symbolic links are followed, one after the other: as many as Linux follows.
const LINKS_MAX: usize = 40;

/// Where Linux has links that are none of a file system.
const KERNEL_FILES: &str = "/proc";

/// Where the system has links to those: `/dev/stdout`.
const DEVICES: &str = "/dev";

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
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
        assert_eq!(mode(&target), 0o600);
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
        assert_eq!(mode(&target), 0o600);
        let refused = NewFile::begin(folder.path(), true).err().unwrap();
        assert!(refused.to_string().contains("directory"), "{refused}");
        assert_eq!(names(folder.path()), ["export"]);
    }

    #[test]
    fn what_a_link_leads_to_is_replaced_and_the_link_stays() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name);
        fs::create_dir(file("far")).unwrap();
        symlink("far/second", file("first")).unwrap();
        symlink("target", file("far/second")).unwrap();
        for text in ["new", "newer"] {
            write_whole(&file("first"), text.as_bytes(), Readers::Owner).unwrap();
            assert_eq!(fs::read_to_string(file("far/target")).unwrap(), text);
            assert_eq!(mode(&file("far/target")), 0o600);
        }
        assert_eq!(names(&file("far")), ["second", "target"]);
        assert!(fs::symlink_metadata(file("first")).unwrap().is_symlink());
        symlink("absent", file("dangling")).unwrap();
        for link in ["first", "dangling"] {
            let refused = NewFile::begin(&file(link), false);
            assert!(matches!(refused.err(), Some(NotWritten::IsLink(_))));
        }
        symlink("circle", file("circle")).unwrap();
        let refused = write_whole(&file("circle"), b"", Readers::Owner).unwrap_err();
        assert!(refused.to_string().contains("links"), "{refused}");
    }

    #[test]
    fn a_file_that_can_t_be_written_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("absent/file");
        let failure = write_whole(&path, b"x", Readers::All).unwrap_err();
        assert!(failure.to_string().contains("absent/file"));
    }
}
