//! Atomic file writes.

use std::{
    ffi::OsString,
    fs::{self, File, Metadata, OpenOptions, Permissions},
    io::{self, ErrorKind, Write},
    os::{
        fd::AsRawFd,
        unix::{
            ffi::OsStringExt,
            fs::{FileTypeExt, MetadataExt, PermissionsExt},
        },
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{Mode, OFlags},
    process::geteuid,
};
use tempfile::{NamedTempFile, TempPath};
use tokio::task::spawn_blocking;

/// A file that is written under a temporary name in the target's folder. Dropping it deletes the temporary file.
///
/// If the target is a symbolic link, the file that it points to is replaced, and the link stays. A target that is not a regular
/// file, such as a device or a pipe, is written to directly.
///
/// Another user may have created the target to redirect the file. So links of users other than the caller and root are refused,
/// and `export` refuses all links unless `--force` is given. Pipes, sockets and devices of other users are refused unless `--force`
/// is given. Links, pipes and devices in `/dev`, and links in `/proc`, are accepted with any owner. Links in the target's
/// folders are followed.
pub(crate) struct NewFile {
    content: File,
    /// The temporary name; `None` if the target is written to directly.
    name: Option<TempPath>,
    target: PathBuf,
    may_replace: bool,
}

/// The users who may read a new file. The mode of a replaced file has no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Readers {
    Owner,
    /// All users, subject to the process's umask.
    All,
}

/// A failed access to a file.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FileAccessError {
    #[error("could not {action} {}: {cause}", path.display())]
    Failed {
        path: PathBuf,
        action: &'static str,
        cause: io::Error,
    },
    #[error("{} already exists; use --force to overwrite it", .0.display())]
    Exists(PathBuf),
    #[error("{} is a symbolic link; use --force to overwrite its target", .0.display())]
    IsLink(PathBuf),
}

impl FileAccessError {
    /// Returns whether the file is not UTF-8.
    pub(crate) fn is_not_text(&self) -> bool {
        matches!(self, Self::Failed { cause, .. } if cause.kind() == ErrorKind::InvalidData)
    }

    pub(crate) fn new(path: &Path, action: &'static str, cause: io::Error) -> Self {
        Self::Failed {
            path: path.to_owned(),
            action,
            cause,
        }
    }
}

/// Writes a file atomically. Replaces an existing file.
///
/// # Errors
/// When the file can't be written. An existing file stays unchanged.
pub(crate) fn write_whole(
    target: &Path,
    bytes: &[u8],
    readers: Readers,
) -> Result<(), FileAccessError> {
    let write = || {
        let new = NewFile::create(target, true, Some("specify another path"), readers)?;
        let mut content = new.content.try_clone()?;
        content.write_all(bytes)?;
        if new.name.is_some() {
            content.sync_all()?;
        }
        new.rename_to_target()
    };
    write().map_err(|cause| FileAccessError::new(target, "write", cause))
}

/// Returns the path of the regular file that a write would replace, if any.
pub(crate) fn replaced_file(target: &Path) -> Result<Option<PathBuf>, FileAccessError> {
    match resolve(target) {
        Ok(Target::Existing(path)) => Ok(Some(path)),
        Ok(Target::Absent(_) | Target::Stream(_)) => Ok(None),
        Err(cause) => Err(FileAccessError::new(target, "write", cause)),
    }
}

impl NewFile {
    /// Starts writing a file that only its owner may read.
    pub(crate) fn begin(target: &Path, is_forced: bool) -> Result<Self, FileAccessError> {
        let refused = |cause| write_error(target, cause);
        if !is_forced && is_link(target).map_err(refused)? {
            // If the link is also refused with `--force`, this is the reason.
            resolve(target).map_err(refused)?;
            return Err(FileAccessError::IsLink(target.to_owned()));
        }
        let remedy = (!is_forced).then_some("use --force to write to it");
        Self::create(target, is_forced, remedy, Readers::Owner).map_err(refused)
    }

    /// Returns a handle for writing the content.
    pub(crate) fn content(&self) -> Result<File, FileAccessError> {
        let content = self.content.try_clone();
        content.map_err(|cause| write_error(&self.target, cause))
    }

    /// Flushes the file to disk, and then renames it to the target.
    ///
    /// # Errors
    /// When the file can't be written. The temporary file is deleted.
    pub(crate) async fn complete(self) -> Result<(), FileAccessError> {
        let target = self.target.clone();
        if self.name.is_some() {
            let content = self.content()?;
            // Flushing may take long. It runs on a blocking thread, so that an interruption can drop `self` and delete the file.
            let synced = spawn_blocking(move || content.sync_all()).await;
            let synced = synced.map_err(io::Error::other).flatten();
            synced.map_err(|cause| write_error(&target, cause))?;
        }
        self.rename_to_target()
            .map_err(|cause| write_error(&target, cause))
    }

    /// Creates a file. If `remedy` is set, refuses pipes, sockets and devices of other users, and suggests it.
    fn create(
        target: &Path,
        may_replace: bool,
        remedy: Option<&'static str>,
        readers: Readers,
    ) -> io::Result<Self> {
        let path = match resolve(target)? {
            Target::Existing(_) if !may_replace => return Err(ErrorKind::AlreadyExists.into()),
            // `begin` found no link, so the link was created afterwards.
            Target::Absent(path) if !may_replace && path != target => {
                return Err(ErrorKind::AlreadyExists.into());
            }
            Target::Existing(path) | Target::Absent(path) => path,
            Target::Stream(stream) => {
                if let Some(remedy) = remedy {
                    stream.check_owner(remedy)?;
                }
                return Ok(Self {
                    content: stream.open_to_append()?,
                    name: None,
                    target: target.to_owned(),
                    may_replace,
                });
            }
        };
        let (content, name) = temporary_file(&path, readers)?.into_parts();
        Ok(Self {
            content,
            name: Some(name),
            target: path,
            may_replace,
        })
    }

    fn rename_to_target(self) -> io::Result<()> {
        let Some(name) = self.name else {
            return Ok(());
        };
        let renamed = if self.may_replace {
            name.persist(&self.target)
        } else {
            name.persist_noclobber(&self.target)
        };
        renamed.map_err(|refused| refused.error)?;
        // The caller may write to a folder without being allowed to open it.
        File::open(folder_of(&self.target)).map_or(Ok(()), |folder| folder.sync_all())
    }
}

/// A target with symbolic links resolved.
enum Target {
    /// The path of a file that does not exist.
    Absent(PathBuf),
    /// The path of a regular file.
    Existing(PathBuf),
    /// A device, a pipe or an open file, to write to directly.
    Stream(Entry),
}

/// Resolves the links of a target.
///
/// # Errors
/// When a link belongs to another user, too.
fn resolve(target: &Path) -> io::Result<Target> {
    let mut path = target.to_owned();
    for _ in 0..LINKS_MAX {
        let entry = match Entry::open(&path) {
            Ok(entry) => entry,
            Err(cause) if cause.kind() == ErrorKind::NotFound => return Ok(Target::Absent(path)),
            Err(cause) => return Err(cause),
        };
        if entry.metadata.is_file() {
            return Ok(Target::Existing(path));
        }
        if entry.metadata.is_dir() {
            return Err(ErrorKind::IsADirectory.into());
        }
        if !entry.metadata.is_symlink() || entry.is_link_to_open_file()? {
            return Ok(Target::Stream(entry));
        }
        entry.check_owner("specify the path of its target")?;
        path = folder_of(&entry.real_path()?).join(entry.link_target()?);
    }
    Err(io::Error::other("too many symbolic links"))
}

/// An existing file, link, pipe or device. It is opened without access to its content, so that it stays the same if another
/// process replaces it under its path.
struct Entry {
    path: PathBuf,
    handle: File,
    metadata: Metadata,
}

impl Entry {
    /// Opens a path without following a link at its end. Does not block if a pipe has no reader.
    fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let handle = File::from(rustix::fs::open(path, flags, Mode::empty())?);
        Ok(Self {
            path: path.to_owned(),
            metadata: handle.metadata()?,
            handle,
        })
    }

    /// Opens the content. Waits until a pipe is opened for reading.
    fn open_to_append(&self) -> io::Result<File> {
        let path = if self.metadata.is_symlink() {
            self.real_path()?
        } else {
            self.path_of_handle()
        };
        // Append, so that output of other writers is not overwritten.
        OpenOptions::new().append(true).open(path)
    }

    /// Returns whether this is a link in `/proc`, such as the target of `/dev/stdout`. It refers to an open file instead of a path.
    fn is_link_to_open_file(&self) -> io::Result<bool> {
        Ok(self.metadata.is_symlink() && self.real_path()?.starts_with(KERNEL_FILES))
    }

    /// Checks that no user other than the caller and root could have created this.
    fn check_owner(&self, remedy: &'static str) -> io::Result<()> {
        let owner = self.metadata.uid();
        if owner == ROOT || owner == geteuid().as_raw() || self.is_of_system()? {
            return Ok(());
        }
        let (kind, path) = (self.kind(), self.path.display());
        let foreign = format!("the {kind} {path} belongs to another user (id {owner}); {remedy}");
        Err(io::Error::new(ErrorKind::PermissionDenied, foreign))
    }

    /// Returns whether only the system creates such entries in this folder. All users may create pipes and links in `/dev/shm`.
    fn is_of_system(&self) -> io::Result<bool> {
        let path = self.real_path()?;
        let kind = self.metadata.file_type();
        let is_device = kind.is_char_device() || kind.is_block_device();
        Ok(path.starts_with(KERNEL_FILES)
            || folder_of(&path) == Path::new(DEVICES)
            || is_device && path.starts_with(DEVICES))
    }

    /// Returns the path without links to folders.
    fn real_path(&self) -> io::Result<PathBuf> {
        fs::read_link(self.path_of_handle())
    }

    fn path_of_handle(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.handle.as_raw_fd()))
    }

    fn link_target(&self) -> io::Result<PathBuf> {
        let target = rustix::fs::readlinkat(&self.handle, "", Vec::new())?;
        Ok(OsString::from_vec(target.into_bytes()).into())
    }

    fn kind(&self) -> &'static str {
        let kind = self.metadata.file_type();
        if kind.is_symlink() {
            "symbolic link"
        } else if kind.is_fifo() {
            "named pipe"
        } else if kind.is_socket() {
            "socket"
        } else {
            "device"
        }
    }
}

/// Returns whether the path is a symbolic link that another user could have created: not directly in `/dev`, and not below `/proc`.
fn is_link(path: &Path) -> io::Result<bool> {
    match Entry::open(path) {
        Ok(entry) => Ok(entry.metadata.is_symlink() && !entry.is_of_system()?),
        Err(cause) if cause.kind() == ErrorKind::NotFound => Ok(false),
        Err(cause) => Err(cause),
    }
}

fn temporary_file(target: &Path, readers: Readers) -> io::Result<NamedTempFile> {
    let mode = match readers {
        Readers::Owner => 0o600,
        Readers::All => 0o644,
    };
    tempfile::Builder::new()
        .prefix(".keywright-")
        .permissions(Permissions::from_mode(mode))
        .tempfile_in(folder_of(target))
        .map_err(without_path)
}

/// Removes the name of the temporary file, which `tempfile` appends to its errors.
fn without_path(error: io::Error) -> io::Error {
    match error.to_string().split_once(" at path ") {
        Some((reason, _)) => io::Error::new(error.kind(), reason),
        None => error,
    }
}

fn folder_of(target: &Path) -> &Path {
    match target.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

fn write_error(target: &Path, cause: io::Error) -> FileAccessError {
    if cause.kind() == ErrorKind::AlreadyExists {
        FileAccessError::Exists(target.to_owned())
    } else {
        FileAccessError::new(target, "write", cause)
    }
}

/// The maximum number of symbolic links to follow, as in Linux.
const LINKS_MAX: usize = 40;

/// The folder with links to open files.
const KERNEL_FILES: &str = "/proc";

/// The folder with links such as `/dev/stdout`.
const DEVICES: &str = "/dev";

/// The id of the user root.
const ROOT: u32 = 0;

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
    async fn existing_files_are_replaced_only_on_request() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("export");
        let raced = NewFile::begin(&target, false).unwrap();
        fs::write(&target, "before").unwrap();
        fs::set_permissions(&target, Permissions::from_mode(0o644)).unwrap();
        let refused = raced.complete().await;
        assert!(matches!(refused, Err(FileAccessError::Exists(_))));
        let refused = NewFile::begin(&target, false);
        assert!(matches!(refused.err(), Some(FileAccessError::Exists(_))));
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
    fn files_in_folders_that_can_not_be_listed_are_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("session");
        fs::set_permissions(folder.path(), Permissions::from_mode(0o300)).unwrap();
        for text in ["new", "newer"] {
            write_whole(&target, text.as_bytes(), Readers::Owner).unwrap();
            assert_eq!(fs::read_to_string(&target).unwrap(), text);
        }
        fs::set_permissions(folder.path(), Permissions::from_mode(0o700)).unwrap();
    }

    #[test]
    fn the_target_of_a_link_is_replaced_and_the_link_stays() {
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
            assert!(matches!(refused.err(), Some(FileAccessError::IsLink(_))));
        }
        symlink("circle", file("circle")).unwrap();
        let refused = write_whole(&file("circle"), b"", Readers::Owner).unwrap_err();
        assert!(refused.to_string().contains("links"), "{refused}");
    }
}
