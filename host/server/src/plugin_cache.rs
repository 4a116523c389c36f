//! Removes unused files from the folder of compiled and pulled components.
//!
//! Servers may share a folder, even servers of different releases, which compile different files. So other servers may
//! use a file that this server does not need. A file's modification time is the time of its last use, and servers that
//! have loaded the file hold a lock on it (`flock`).

use std::{
    collections::BTreeSet,
    fs::{self, DirEntry, File},
    io,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use keywright_registry::{CACHE_EXTENSIONS as PULLED, Cache};
use keywright_runtime::CACHE_EXTENSIONS as COMPILED;

/// Loaded files. They are not removed until this value is dropped.
pub(crate) struct InUse {
    /// Each has a shared lock.
    files: Vec<File>,
}

impl InUse {
    /// Marks files as used now. A file that is missing or can't be marked only causes a later compilation or download.
    pub(crate) fn mark(paths: &BTreeSet<PathBuf>, now: SystemTime) -> Self {
        let mark = |path: &PathBuf| match mark_used(path, now) {
            Ok(file) => Some(file),
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => None,
            Err(cause) => {
                tracing::warn!(path = %path.display(), %cause, "could not mark a file of the plugin cache as used");
                None
            }
        };
        let files = paths.iter().filter_map(mark).collect();
        Self { files }
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        for file in &self.files {
            // Closing the file releases the lock in any case.
            let _ = file.unlock();
        }
    }
}

fn mark_used(path: &Path, now: SystemTime) -> io::Result<File> {
    let file = File::open(path)?;
    file.set_modified(now)?;
    file.lock_shared()?;
    Ok(file)
}

/// Removes files that are not in use and have not been used for longer than `unused_max`, and temporary files of
/// servers that stopped while writing. Errors are logged.
pub(crate) fn remove_unused(cache_directory: &Path, unused_max: Duration, now: SystemTime) {
    let (mut files, mut bytes) = (0_u64, 0_u64);
    for (folder, extensions) in [
        (cache_directory.to_owned(), &COMPILED[..]),
        (Cache::folder(cache_directory), &PULLED),
    ] {
        // The folder is missing if nothing was ever pulled.
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            match remove_if_unused(&entry, extensions, unused_max, now) {
                Ok(None) => {}
                Ok(Some(length)) => {
                    files += 1;
                    bytes = bytes.saturating_add(length);
                }
                Err(cause) => {
                    tracing::warn!(path = %entry.path().display(), %cause, "could not remove an unused file from the plugin cache");
                }
            }
        }
    }
    if files > 0 {
        tracing::info!(files, bytes, "removed unused files from the plugin cache");
    }
}

/// Removes a file if it is unused. Returns the length of a removed file.
fn remove_if_unused(
    entry: &DirEntry,
    extensions: &[&str],
    unused_max: Duration,
    now: SystemTime,
) -> io::Result<Option<u64>> {
    let name = entry.file_name();
    let name = name.to_string_lossy();
    let age_max = if is_cache_file(&name, extensions) {
        unused_max
    } else if name.starts_with(TEMPORARY) {
        TEMPORARY_AGE_MAX
    } else {
        return Ok(None);
    };
    let is_old = |modified: SystemTime| {
        now.duration_since(modified)
            .is_ok_and(|unused| unused > age_max)
    };
    if !entry.file_type()?.is_file() || !is_old(entry.metadata()?.modified()?) {
        return Ok(None);
    }
    let path = entry.path();
    let outcome = File::open(&path).and_then(|file| {
        // An error may also mean that the file system has no locks; the file may be in use then, too.
        if file.try_lock().is_err() {
            return Ok(None);
        }
        // Another server may have marked or replaced it since.
        let metadata = fs::symlink_metadata(&path)?;
        if !is_old(metadata.modified()?) {
            return Ok(None);
        }
        fs::remove_file(&path)?;
        Ok(Some(metadata.len()))
    });
    match outcome {
        // Another server removed it first.
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
        outcome => outcome,
    }
}

/// Returns whether a file belongs to the cache: its name starts with a digest and has one of the extensions.
fn is_cache_file(name: &str, extensions: &[&str]) -> bool {
    let Some((digest, rest)) = name.split_once(['-', '.']) else {
        return false;
    };
    let is_digest = digest.len() == DIGEST_DIGITS
        && digest
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let ends = |extension: &&str| {
        let before = rest.strip_suffix(*extension);
        before.is_some_and(|before| before.is_empty() || before.ends_with('.'))
    };
    is_digest && extensions.iter().any(ends)
}

/// The number of hexadecimal digits of a SHA-256.
const DIGEST_DIGITS: usize = 64;
/// The prefix of temporary file names.
const TEMPORARY: &str = ".tmp";
/// The age after which a temporary file is abandoned; writing one takes seconds.
const TEMPORARY_AGE_MAX: Duration = Duration::from_hours(24);

#[cfg(test)]
mod tests {
    use super::*;

    const UNUSED_MAX: Duration = Duration::from_hours(30 * 24);
    const SECOND: Duration = Duration::from_secs(1);

    /// Returns a cache with one file, unused for this long.
    fn with_file(name: &str, unused: Duration, now: SystemTime) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(Cache::folder(folder.path())).unwrap();
        let path = folder.path().join(name);
        let file = File::create(&path).unwrap();
        file.set_modified(now - unused).unwrap();
        (folder, path)
    }

    fn is_kept(name: &str, unused: Duration) -> bool {
        let now = SystemTime::now();
        let (folder, path) = with_file(name, unused, now);
        remove_unused(folder.path(), UNUSED_MAX, now);
        path.exists()
    }

    #[test]
    fn files_are_removed_only_after_the_maximum_unused_time() {
        let digest = "0123456789abcdef".repeat(4);
        for (name, unused_max) in [
            (format!("{digest}-0123456789abcdef.cwasm"), UNUSED_MAX),
            (format!("{digest}-0123456789abcdef-1.entropy"), UNUSED_MAX),
            (format!("registry/{digest}.wasm"), UNUSED_MAX),
            (format!("registry/{digest}.manifest.json"), UNUSED_MAX),
            (format!("registry/{digest}.cosign.json"), UNUSED_MAX),
            (format!("registry/{digest}.minisig"), UNUSED_MAX),
            (".tmpAbCdEf".to_owned(), TEMPORARY_AGE_MAX),
            ("registry/.tmpAbCdEf".to_owned(), TEMPORARY_AGE_MAX),
        ] {
            assert!(is_kept(&name, Duration::ZERO), "{name}");
            assert!(is_kept(&name, unused_max), "{name}");
            assert!(!is_kept(&name, unused_max + SECOND), "{name}");
        }
    }

    #[test]
    fn unrelated_files_are_not_removed() {
        let digest = "0123456789abcdef".repeat(4);
        for name in [
            "keywright.db".to_owned(),
            "plugin.cwasm".to_owned(),
            format!("{digest}.wasm"),
            format!("{}.cwasm", digest.to_uppercase()),
            format!("{digest}0-1.cwasm"),
            format!("{digest}-1.xcwasm"),
            format!("registry/{digest}.json"),
            format!("registry/{digest}-1.cwasm"),
        ] {
            assert!(is_kept(&name, UNUSED_MAX * 2), "{name}");
        }
    }

    #[test]
    fn loaded_files_are_not_removed_while_in_use() {
        let now = SystemTime::now();
        let name = format!("{}-1.cwasm", "0123456789abcdef".repeat(4));
        let (folder, path) = with_file(&name, Duration::ZERO, now);
        let absent = folder.path().join("absent");
        let in_use = InUse::mark(
            &BTreeSet::from([path.clone(), absent]),
            now - UNUSED_MAX * 2,
        );
        assert_eq!(in_use.files.len(), 1);
        remove_unused(folder.path(), UNUSED_MAX, now);
        assert!(path.exists());
        drop(in_use);
        drop(InUse::mark(&BTreeSet::from([path.clone()]), now));
        remove_unused(folder.path(), UNUSED_MAX, now + UNUSED_MAX);
        assert!(path.exists());
        remove_unused(folder.path(), UNUSED_MAX, now + UNUSED_MAX + SECOND);
        assert!(!path.exists());
    }
}
