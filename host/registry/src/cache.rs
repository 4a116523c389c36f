//! What was pulled, on disk, so that a server starts when the registry is away.
//!
//! Each file is named for a digest, and is held against it, or against the key of its signature, whenever it is read. So
//! nobody who can change the files can have another component loaded.

use std::{
    fs::{self, DirBuilder, File},
    io::{self, Read, Write},
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use crate::Digest;

/// What was pulled earlier.
#[derive(Clone, Debug)]
pub struct Cache {
    /// The folder with it, if there is one.
    folder: Option<PathBuf>,
    keeps: bool,
}

/// What is kept of a component.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kept {
    /// The component itself, under its own digest.
    Component,
    /// Its signatures by cosign, under the digest of its manifest.
    CosignSignatures,
    /// Its manifest.
    Manifest,
    /// Its signature by minisign, under the digest of its manifest.
    MinisignSignature,
}

impl Cache {
    /// The cache below the folder in which compiled components are kept. It is made when it is absent.
    #[must_use]
    pub fn new(cache_directory: &Path) -> Self {
        Self {
            folder: Some(cache_directory.join(FOLDER)),
            keeps: true,
        }
    }

    /// A cache that is empty, and stays so.
    #[must_use]
    pub fn none() -> Self {
        Self {
            folder: None,
            keeps: false,
        }
    }

    /// The same, to which nothing is added.
    #[must_use]
    pub fn read_only(cache_directory: &Path) -> Self {
        Self {
            keeps: false,
            ..Self::new(cache_directory)
        }
    }

    /// What is kept, if it is there and not larger than it may be.
    pub(crate) fn read(&self, kept: Kept, digest: &Digest, bytes_max: u64) -> Option<Vec<u8>> {
        let path = self.path(kept, digest)?;
        match read(&path, bytes_max) {
            Ok(bytes) => Some(bytes),
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => None,
            Err(cause) => {
                warn_of_replacement(&path, &cause.to_string());
                None
            }
        }
    }

    /// What is kept under its own digest, if it is what it was.
    pub(crate) fn read_verified(
        &self,
        kept: Kept,
        digest: &Digest,
        bytes_max: u64,
    ) -> Option<Vec<u8>> {
        let bytes = self.read(kept, digest, bytes_max)?;
        if Digest::of(&bytes) == *digest {
            return Some(bytes);
        }
        warn_of_replacement(&self.path(kept, digest)?, "it is not what it was");
        None
    }

    /// Keeps something. That it can't be kept is no reason against using it.
    pub(crate) fn keep(&self, kept: Kept, digest: &Digest, bytes: &[u8]) {
        if self.keeps
            && let Some(path) = self.path(kept, digest)
            && let Err(cause) = write(&path, bytes)
        {
            tracing::warn!(path = %path.display(), %cause, "what was pulled from a registry could not be kept");
        }
    }

    fn path(&self, kept: Kept, digest: &Digest) -> Option<PathBuf> {
        let extension = match kept {
            Kept::Component => "wasm",
            Kept::CosignSignatures => "cosign.json",
            Kept::Manifest => "manifest.json",
            Kept::MinisignSignature => "minisig",
        };
        let name = format!("{}.{extension}", digest.hexadecimal());
        self.folder.as_ref().map(|folder| folder.join(name))
    }
}

/// Writes a file beside the place and moves it there, so that nobody ever reads a part of it.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(path);
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    file.persist(path)?;
    Ok(())
}

fn read(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = File::open(path)?;
    let length = file
        .take(bytes_max.saturating_add(1))
        .read_to_end(&mut bytes)?;
    if u64::try_from(length).is_ok_and(|length| length > bytes_max) {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            "it is too large",
        ));
    }
    Ok(bytes)
}

/// A file that a person has put somewhere, such as a signature, if it is there.
///
/// # Errors
/// When it is there and can't be read, or is larger than it may be.
pub(crate) fn read_if_there(path: &Path, bytes_max: u64) -> io::Result<Option<Vec<u8>>> {
    match fs::symlink_metadata(path) {
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
        _ => read(path, bytes_max).map(Some),
    }
}

fn warn_of_replacement(path: &Path, cause: &str) {
    tracing::warn!(path = %path.display(), cause, "what was kept of a registry is pulled anew");
}

/// The folder below that of the compiled components.
const FOLDER: &str = "registry";

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_is_kept_is_read_unless_it_was_changed_or_is_too_large() {
        let folder = tempfile::tempdir().unwrap();
        let above = folder.path().join("deep").join("cache");
        let (cache, digest) = (Cache::new(&above), Digest::of(b"bytes"));
        let read = |bytes_max| cache.read_verified(Kept::Component, &digest, bytes_max);
        Cache::none().keep(Kept::Component, &digest, b"bytes");
        assert_eq!(read(5), None);
        Cache::read_only(&above).keep(Kept::Component, &digest, b"bytes");
        assert_eq!(read(5), None);
        cache.keep(Kept::Component, &digest, b"bytes");
        assert_eq!(
            fs::metadata(&above).unwrap().permissions().mode() & 0o777,
            0o700
        );
        assert_eq!(read(5).as_deref(), Some(&b"bytes"[..]));
        assert_eq!(read(4), None);
        let path = cache.path(Kept::Component, &digest).unwrap();
        fs::write(&path, b"bytez").unwrap();
        assert_eq!(read(5), None);
        cache.keep(Kept::Component, &digest, b"bytes");
        assert!(read(5).is_some());
    }
}
