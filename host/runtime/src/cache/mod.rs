//! Compiled components on disk, so that a warm start compiles nothing.
//!
//! Loading compiled code trusts it, so each file begins with an HMAC under a key that only servers have, over the file's
//! name and contents. It follows from the encryption key, so a change of that changes it: files under the keys before are
//! read as well, and kept under the new one from then on, so that the change costs no compilation. The name says which component it was made of and by which engine. What was found out about a
//! component stands beside it, kept in the same way ([`verdicts`]).

mod verdicts;

use std::{
    collections::BTreeSet,
    fs,
    hash::{Hash, Hasher},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use aws_lc_rs::{digest, hmac};
use wasmtime::{Engine, component::Component};

use crate::refused::{LoadRefused, Refusal};

/// What the key of the cache is derived for.
const KEY_LABEL: &[u8] = b"keywright compiled components, version 1";
/// The ends of the names of files: compiled components, reports on the randomness of generators, and what is locked while
/// such a report is made.
const COMPILED: &str = "cwasm";
const REPORT: &str = "entropy";
const REPORT_LOCK: &str = "entropy-lock";
/// The length of the HMAC before the code, in bytes.
const TAG_BYTES: usize = digest::SHA256_OUTPUT_LEN;

/// The keys that prove that a file was written by a server of ours. They must be secret.
#[derive(Clone)]
pub struct CacheKeys {
    writing: hmac::Key,
    others: Vec<hmac::Key>,
}

impl CacheKeys {
    /// Files are written under the first key, which must be the same at every start. Those under the others, which were first
    /// before, are read.
    pub fn new<'a>(first: &[u8; 32], others: impl IntoIterator<Item = &'a [u8; 32]>) -> Self {
        Self {
            writing: purposeful(first),
            others: others.into_iter().map(purposeful).collect(),
        }
    }

    /// All keys, that under which is written first.
    fn all(&self) -> impl Iterator<Item = &hmac::Key> {
        std::iter::once(&self.writing).chain(&self.others)
    }
}

fn purposeful(master_key: &[u8; 32]) -> hmac::Key {
    let master_key = hmac::Key::new(hmac::HMAC_SHA256, master_key);
    hmac::Key::new(
        hmac::HMAC_SHA256,
        hmac::sign(&master_key, KEY_LABEL).as_ref(),
    )
}

/// The directory of compiled components.
pub(crate) struct Cache {
    directory: PathBuf,
    keys: CacheKeys,
    engine_hash: String,
    /// The files that were asked for.
    used: Mutex<BTreeSet<PathBuf>>,
}

/// What the names of files in the cache end with. They begin with the digest of a component.
pub const CACHE_EXTENSIONS: [&str; 3] = [COMPILED, REPORT, REPORT_LOCK];

impl Cache {
    /// Opens the directory, or makes it.
    ///
    /// # Errors
    /// When it can't be made, or somebody else could write or read it.
    pub(crate) fn open(
        directory: &Path,
        keys: &CacheKeys,
        engine: &Engine,
    ) -> Result<Self, LoadRefused> {
        let refused = |source| LoadRefused::CacheDirectory {
            path: directory.to_owned(),
            source,
        };
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)
            .map_err(refused)?;
        let metadata = fs::metadata(directory).map_err(refused)?;
        let rule = if metadata.uid() != rustix::process::geteuid().as_raw() {
            Some("must belong to the user that the server runs as")
        } else if metadata.mode() & 0o077 != 0 {
            Some("must have the mode 0700, so that nobody else can look into it or write there")
        } else {
            None
        };
        if let Some(rule) = rule {
            return Err(LoadRefused::CacheDirectoryUnsafe {
                path: directory.to_owned(),
                rule,
            });
        }
        Ok(Self {
            directory: directory.to_owned(),
            keys: keys.clone(),
            engine_hash: engine_hash(engine),
            used: Mutex::default(),
        })
    }

    /// The files of what was asked for so far, as far as they could be kept.
    pub(crate) fn used_files(&self) -> BTreeSet<PathBuf> {
        let used = self.used.lock();
        used.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn use_file(&self, path: &Path) {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.insert(path.to_owned());
    }

    /// The component with this digest, from the cache or compiled from its bytes and then kept.
    ///
    /// # Errors
    /// When the bytes are no component, or need more than the sandbox has.
    pub(crate) fn component(
        &self,
        engine: &Engine,
        component_digest: &str,
        bytes: &[u8],
    ) -> Result<Component, Refusal> {
        let name = format!("{component_digest}-{}.{COMPILED}", self.engine_hash);
        let path = self.directory.join(&name);
        self.use_file(&path);
        match self.read(&name, &path) {
            Ok(Some(code)) => match load_code(engine, &code) {
                Ok(component) => return Ok(component),
                Err(cause) => warn_of_replacement(&path, &format!("{cause:#}")),
            },
            Ok(None) => {}
            Err(cause) => warn_of_replacement(&path, &cause.to_string()),
        }
        let (code, component) = compile(engine, bytes)?;
        self.keep(&name, &path, &code);
        Ok(component)
    }

    /// The code in a file that is ours; nothing when there is no file. One under another key is kept under the first.
    fn read(&self, name: &str, path: &Path) -> io::Result<Option<Vec<u8>>> {
        let mut file = match fs::read(path) {
            Ok(file) => file,
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(cause) => return Err(cause),
        };
        let proven_by = file.split_at_checked(TAG_BYTES).and_then(|(tag, code)| {
            let authenticated = authenticated(name, code);
            let mut keys = self.keys.all();
            keys.position(|key| hmac::verify(key, &authenticated, tag).is_ok())
        });
        let Some(key_number) = proven_by else {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "it is damaged or not ours",
            ));
        };
        file.drain(..TAG_BYTES);
        if key_number > 0 {
            self.keep(name, path, &file);
        }
        Ok(Some(file))
    }

    /// Writes a file, without which all goes on, though not as fast at the next start.
    fn keep(&self, name: &str, path: &Path, content: &[u8]) {
        if let Err(cause) = self.write(name, path, content) {
            tracing::warn!(path = %path.display(), %cause, "what was compiled or found out of a plugin could not be kept");
        }
    }

    /// Writes a file beside the place and moves it there, so that nobody ever reads a part of it.
    fn write(&self, name: &str, path: &Path, code: &[u8]) -> io::Result<()> {
        let tag = hmac::sign(&self.keys.writing, &authenticated(name, code));
        let mut file = tempfile::NamedTempFile::new_in(&self.directory)?;
        file.write_all(tag.as_ref())?;
        file.write_all(code)?;
        file.persist(path)?;
        Ok(())
    }
}

/// Compiles a component: the compiled code, and the component that was loaded of it.
///
/// # Errors
/// When the bytes are no component, or need more than the sandbox has.
pub(crate) fn compile(engine: &Engine, bytes: &[u8]) -> Result<(Vec<u8>, Component), Refusal> {
    let code = engine
        .precompile_component(bytes)
        .map_err(Refusal::NotAComponent)?;
    let component = load_code(engine, &code).map_err(Refusal::TooDemanding)?;
    Ok((code, component))
}

fn warn_of_replacement(path: &Path, cause: &str) {
    tracing::warn!(path = %path.display(), cause, "a compiled component is compiled anew");
}

fn authenticated(name: &str, code: &[u8]) -> Vec<u8> {
    [name.as_bytes(), &[0], code].concat()
}

#[expect(
    unsafe_code,
    reason = "loading compiled code is the engine's only unsafe entry"
)]
fn load_code(engine: &Engine, code: &[u8]) -> wasmtime::Result<Component> {
    // SAFETY: the code was made by this engine's compiler: either just now, or earlier and its HMAC was verified.
    unsafe { Component::deserialize(engine, code) }
}

/// What the engine's version and settings mean for compiled code, in hexadecimal.
fn engine_hash(engine: &Engine) -> String {
    let mut hasher = DigestHasher(digest::Context::new(&digest::SHA256));
    engine.precompile_compatibility_hash().hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// SHA-256 as a hasher, because the standard one may differ between builds of the server.
struct DigestHasher(digest::Context);

impl Hasher for DigestHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        let digest = self.0.clone().finish();
        digest
            .as_ref()
            .iter()
            .take(8)
            .fold(0, |hash, byte| (hash << 8) | u64::from(*byte))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::engine::new_engine;

    /// An empty component.
    const COMPONENT: &[u8] = b"\0asm\x0d\0\x01\0";

    fn kept(directory: &Path) -> PathBuf {
        fs::read_dir(directory)
            .unwrap()
            .next()
            .unwrap()
            .unwrap()
            .path()
    }

    #[test]
    fn a_kept_component_is_used_and_a_changed_one_is_compiled_anew() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("deep").join("cache");
        let engine = new_engine(1, 1 << 20).unwrap();
        let keys = CacheKeys::new(&[1; 32], []);
        let cache = Cache::open(&path, &keys, &engine).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
        cache.component(&engine, "d", COMPONENT).unwrap();
        // With a kept file the bytes are not even looked at.
        cache.component(&engine, "d", b"nonsense").unwrap();
        assert_eq!(cache.used_files(), BTreeSet::from([kept(&path)]));
        let whole = fs::read(kept(&path)).unwrap();
        for place in [0, TAG_BYTES, whole.len() - 1] {
            let mut damaged = whole.clone();
            damaged[place] ^= 1;
            fs::write(kept(&path), &damaged).unwrap();
            assert!(
                cache.component(&engine, "d", b"nonsense").is_err(),
                "byte {place}"
            );
            cache.component(&engine, "d", COMPONENT).unwrap();
            assert_eq!(fs::read(kept(&path)).unwrap(), whole);
        }
        fs::write(kept(&path), b"short").unwrap();
        assert!(cache.component(&engine, "d", b"nonsense").is_err());
    }

    #[test]
    fn another_component_or_key_does_not_open_a_kept_file() {
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let engine = new_engine(1, 1 << 20).unwrap();
        let keys = CacheKeys::new(&[1; 32], []);
        let cache = Cache::open(directory.path(), &keys, &engine).unwrap();
        cache.component(&engine, "d", COMPONENT).unwrap();
        let others = CacheKeys::new(&[2; 32], []);
        let other = Cache::open(directory.path(), &others, &engine).unwrap();
        assert!(other.component(&engine, "d", b"nonsense").is_err());
        let name = kept(directory.path()).file_name().unwrap().to_owned();
        let copy = name.to_str().unwrap().replacen('d', "e", 1);
        fs::copy(kept(directory.path()), directory.path().join(copy)).unwrap();
        assert!(cache.component(&engine, "e", b"nonsense").is_err());
    }

    #[test]
    fn a_file_under_a_key_that_was_first_before_is_used_and_kept_under_the_new_one() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("cache");
        let engine = new_engine(1, 1 << 20).unwrap();
        let before = CacheKeys::new(&[1; 32], []);
        let changed = CacheKeys::new(&[2; 32], [&[3; 32], &[1; 32]]);
        let after = CacheKeys::new(&[2; 32], []);
        let loaded = |keys: &CacheKeys, bytes: &[u8]| {
            let cache = Cache::open(&path, keys, &engine).unwrap();
            cache.component(&engine, "d", bytes).is_ok()
        };
        assert!(loaded(&before, COMPONENT));
        assert!(!loaded(&after, b"nonsense"));
        assert!(loaded(&changed, b"nonsense"));
        assert!(loaded(&after, b"nonsense"));
        assert!(!loaded(&before, b"nonsense"));
    }

    #[test]
    fn a_directory_that_others_can_enter_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o710)).unwrap();
        let engine = new_engine(1, 1 << 20).unwrap();
        let keys = CacheKeys::new(&[1; 32], []);
        let Err(refused) = Cache::open(directory.path(), &keys, &engine) else {
            panic!("taken")
        };
        assert!(
            refused.to_string().contains("must have the mode 0700"),
            "{refused}"
        );
    }
}
