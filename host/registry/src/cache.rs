//! What was pulled, on disk, so that a server starts when the registry is away.
//!
//! Each file is named for a digest, and is held against it, or against the key of its signature, whenever it is read. So
//! nobody who can change the files can have another component loaded.

use std::{
    collections::BTreeSet,
    fs::{self, DirBuilder, File},
    io::{self, Read, Write},
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use crate::Digest;

/// What was pulled earlier.
#[derive(Clone, Debug)]
pub struct Cache {
    /// The folder with it, if there is one.
    folder: Option<PathBuf>,
    keeps: bool,
    /// The files that were read or written.
    used: Arc<Mutex<BTreeSet<PathBuf>>>,
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
            folder: Some(Self::folder(cache_directory)),
            keeps: true,
            used: Arc::default(),
        }
    }

    /// The folder of what was pulled, below the folder in which compiled components are kept.
    #[must_use]
    pub fn folder(cache_directory: &Path) -> PathBuf {
        cache_directory.join(FOLDER)
    }

    /// A cache that is empty, and stays so.
    #[must_use]
    pub fn none() -> Self {
        Self {
            folder: None,
            keeps: false,
            used: Arc::default(),
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

    /// The files of which something was read so far, or into which something was put.
    #[must_use]
    pub fn used_files(&self) -> BTreeSet<PathBuf> {
        let used = self.used.lock();
        used.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn use_file(&self, path: PathBuf) {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.insert(path);
    }

    /// What is kept, if it is there and not larger than it may be.
    pub(crate) fn read(&self, kept: Kept, digest: &Digest, bytes_max: u64) -> Option<Vec<u8>> {
        let path = self.path(kept, digest)?;
        match read(&path, bytes_max) {
            Ok(bytes) => {
                self.use_file(path);
                Some(bytes)
            }
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
        let Some(path) = self.path(kept, digest).filter(|_| self.keeps) else {
            return;
        };
        match write(&path, bytes) {
            Ok(()) => self.use_file(path),
            Err(cause) => {
                tracing::warn!(path = %path.display(), %cause, "what was pulled from a registry could not be kept");
            }
        }
    }

    fn path(&self, kept: Kept, digest: &Digest) -> Option<PathBuf> {
        let extension = match kept {
            Kept::Component => COMPONENT,
            Kept::CosignSignatures => COSIGN_SIGNATURES,
            Kept::Manifest => MANIFEST,
            Kept::MinisignSignature => MINISIGN_SIGNATURE,
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

/// What the names of files in the folder end with. They begin with a digest.
pub const CACHE_EXTENSIONS: [&str; 4] =
    [COMPONENT, COSIGN_SIGNATURES, MANIFEST, MINISIGN_SIGNATURE];

const COMPONENT: &str = "wasm";
const COSIGN_SIGNATURES: &str = "cosign.json";
const MANIFEST: &str = "manifest.json";
const MINISIGN_SIGNATURE: &str = "minisig";

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

    #[test]
    fn what_was_read_or_kept_counts_as_used_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let before = Cache::new(folder.path());
        let [kept, unread, absent] = [&b"kept"[..], b"unread", b"absent"].map(Digest::of);
        for digest in [&kept, &unread] {
            before.keep(Kept::Manifest, digest, b"bytes");
        }
        let used = |digests: &[&Digest]| -> BTreeSet<PathBuf> {
            let paths = digests
                .iter()
                .map(|digest| before.path(Kept::Manifest, digest));
            paths.flatten().collect()
        };
        assert_eq!(before.used_files(), used(&[&kept, &unread]));
        let after = Cache::new(folder.path());
        assert!(after.read(Kept::Manifest, &kept, 5).is_some());
        assert_eq!(after.read(Kept::Manifest, &absent, 5), None);
        assert_eq!(after.read(Kept::Manifest, &unread, 4), None);
        assert_eq!(after.used_files(), used(&[&kept]));
    }
}
