//! The on-disk cache of pulled files, so that a server starts while the registry is unavailable.
//!
//! Each file is named after a digest. Every read verifies the file against that digest or, for signatures, with the signing
//! key. So even a user who can modify the files can't make a server load another component.

use std::{
    collections::BTreeSet,
    fs::{self, DirBuilder, File},
    io::{self, Read, Write},
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::Mutex;

use crate::Digest;

/// The cache of pulled files. By default, it is always empty.
#[derive(Clone, Debug, Default)]
pub struct Cache {
    /// The folder of the cache, or `None` for a cache that is always empty.
    folder: Option<PathBuf>,
    is_writable: bool,
    /// The files read or written so far.
    used: Arc<Mutex<BTreeSet<PathBuf>>>,
}

/// The kinds of files in the cache.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CacheEntry {
    /// A component, named after its own digest.
    Component,
    /// The cosign signatures of a component, named after the digest of its manifest.
    CosignSignatures,
    /// The manifest of a component, named after its own digest.
    Manifest,
    /// The minisign signature of a component, named after the digest of its manifest.
    MinisignSignature,
}

impl Cache {
    /// Returns the cache in the folder for compiled components. The first write creates its subfolder.
    pub fn new(cache_directory: &Path) -> Self {
        Self {
            folder: Some(Self::folder(cache_directory)),
            is_writable: true,
            used: Arc::default(),
        }
    }

    /// Returns the subfolder for pulled files in the folder for compiled components.
    pub fn folder(cache_directory: &Path) -> PathBuf {
        cache_directory.join(FOLDER)
    }

    /// Returns the cache in the folder for compiled components, for reading only.
    pub fn read_only(cache_directory: &Path) -> Self {
        Self {
            is_writable: false,
            ..Self::new(cache_directory)
        }
    }

    /// Returns the files read or written so far.
    pub fn used_files(&self) -> BTreeSet<PathBuf> {
        self.used.lock().clone()
    }

    /// Reads a file without verifying it. Returns `None` if it does not exist, is unreadable, or exceeds the size limit.
    pub(crate) fn read(
        &self,
        entry: CacheEntry,
        digest: &Digest,
        bytes_max: u64,
    ) -> Option<Vec<u8>> {
        let path = self.path(entry, digest)?;
        match read(&path, bytes_max) {
            Ok(bytes) => {
                self.used.lock().insert(path);
                Some(bytes)
            }
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => None,
            Err(cause) => {
                warn_of_replacement(&path, &cause.to_string());
                None
            }
        }
    }

    /// Reads a file that is named after its own digest, and verifies the digest.
    pub(crate) fn read_verified(
        &self,
        entry: CacheEntry,
        digest: &Digest,
        bytes_max: u64,
    ) -> Option<Vec<u8>> {
        let bytes = self.read(entry, digest, bytes_max)?;
        if Digest::of(&bytes) == *digest {
            return Some(bytes);
        }
        warn_of_replacement(&self.path(entry, digest)?, "its digest differs");
        None
    }

    /// Writes a file. Failures are only logged, because the caller has the bytes already.
    pub(crate) fn write(&self, entry: CacheEntry, digest: &Digest, bytes: &[u8]) {
        let Some(path) = self.path(entry, digest).filter(|_| self.is_writable) else {
            return;
        };
        match write(&path, bytes) {
            Ok(()) => drop(self.used.lock().insert(path)),
            Err(cause) => {
                tracing::warn!(path = %path.display(), %cause, "could not cache a file from a registry");
            }
        }
    }

    fn path(&self, entry: CacheEntry, digest: &Digest) -> Option<PathBuf> {
        let extension = match entry {
            CacheEntry::Component => COMPONENT,
            CacheEntry::CosignSignatures => COSIGN_SIGNATURES,
            CacheEntry::Manifest => MANIFEST,
            CacheEntry::MinisignSignature => MINISIGN_SIGNATURE,
        };
        let name = format!("{}.{extension}", digest.hexadecimal());
        self.folder.as_ref().map(|folder| folder.join(name))
    }
}

/// Writes a temporary file and renames it, so that readers never see a partial file.
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
            "the file is too large",
        ));
    }
    Ok(bytes)
}

/// Reads a file, or returns `None` if it does not exist.
pub(crate) fn read_if_exists(path: &Path, bytes_max: u64) -> io::Result<Option<Vec<u8>>> {
    match fs::symlink_metadata(path) {
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
        _ => read(path, bytes_max).map(Some),
    }
}

fn warn_of_replacement(path: &Path, cause: &str) {
    tracing::warn!(path = %path.display(), cause, "cached file is unusable; pulling it again");
}

/// The subfolder in the folder for compiled components.
const FOLDER: &str = "registry";

/// The extensions of cached files. Each file is named after a digest.
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
    fn cached_file_is_read_unless_modified_or_too_large() {
        let folder = tempfile::tempdir().unwrap();
        let above = folder.path().join("deep").join("cache");
        let (cache, digest) = (Cache::new(&above), Digest::of(b"bytes"));
        let read = |bytes_max| cache.read_verified(CacheEntry::Component, &digest, bytes_max);
        Cache::default().write(CacheEntry::Component, &digest, b"bytes");
        assert_eq!(read(5), None);
        Cache::read_only(&above).write(CacheEntry::Component, &digest, b"bytes");
        assert_eq!(read(5), None);
        cache.write(CacheEntry::Component, &digest, b"bytes");
        assert_eq!(
            fs::metadata(&above).unwrap().permissions().mode() & 0o777,
            0o700
        );
        assert_eq!(read(5).as_deref(), Some(&b"bytes"[..]));
        assert_eq!(read(4), None);
        let path = cache.path(CacheEntry::Component, &digest).unwrap();
        fs::write(&path, b"bytez").unwrap();
        assert_eq!(read(5), None);
        cache.write(CacheEntry::Component, &digest, b"bytes");
        assert!(read(5).is_some());
    }

    #[test]
    fn only_files_read_or_written_count_as_used() {
        let folder = tempfile::tempdir().unwrap();
        let before = Cache::new(folder.path());
        let [kept, unread, absent] = [&b"kept"[..], b"unread", b"absent"].map(Digest::of);
        for digest in [&kept, &unread] {
            before.write(CacheEntry::Manifest, digest, b"bytes");
        }
        let used = |digests: &[&Digest]| -> BTreeSet<PathBuf> {
            let paths = digests
                .iter()
                .map(|digest| before.path(CacheEntry::Manifest, digest));
            paths.flatten().collect()
        };
        assert_eq!(before.used_files(), used(&[&kept, &unread]));
        let after = Cache::new(folder.path());
        assert!(after.read(CacheEntry::Manifest, &kept, 5).is_some());
        assert_eq!(after.read(CacheEntry::Manifest, &absent, 5), None);
        assert_eq!(after.read(CacheEntry::Manifest, &unread, 4), None);
        assert_eq!(after.used_files(), used(&[&kept]));
    }
}
