//! The on-disk cache of compiled components, so that a warm start compiles nothing.
//!
//! Compiled code is trusted when it is loaded, so each file begins with an HMAC over its name and contents, under a key that
//! only servers have. The key is derived from the active encryption key. File names contain the component's digest, the engine
//! and the key, so servers with different keys can share the directory. Reports of the entropy test are stored alongside, in the
//! same way ([`entropy_reports`]).

mod entropy_reports;

use std::{
    collections::BTreeSet,
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt},
    path::{Path, PathBuf},
};

use aws_lc_rs::{digest, hmac};
use parking_lot::Mutex;
use rustix::process::{Uid, geteuid};
use wasmtime::{Engine, component::Component};
use zeroize::Zeroizing;

use crate::{
    config::Compiler,
    load_error::{LoadError, PluginRefusedError},
};

/// The label from which the cache key is derived.
const KEY_LABEL: &[u8] = b"keywright compiled components, version 1";
/// The label from which the key's tag in file names is derived.
const KEY_TAG_LABEL: &[u8] = b"the name of this key";
/// The extensions of compiled components and of reports of the entropy test.
const COMPILED: &str = "cwasm";
const REPORT: &str = "entropy";
/// The file with the key in the directory of a user.
const USER_KEY: &str = "key";
/// The length of the HMAC before the code, in bytes.
const TAG_BYTES: usize = digest::SHA256_OUTPUT_LEN;

/// The key that authenticates cache files.
#[derive(Clone)]
pub struct CacheKey(hmac::Key);

impl CacheKey {
    /// Derives the key from a secret. Files written under the key of another secret are not read.
    pub fn new(secret: &[u8; 32]) -> Self {
        Self(derived_key(secret))
    }
}

/// Returns the tag of a key in file names. The key can't be derived from it.
fn key_tag(key: &hmac::Key) -> String {
    tag(key, KEY_TAG_LABEL)
}

/// Returns the first eight bytes of an HMAC in hexadecimal, for a file name.
fn tag(key: &hmac::Key, of: &[u8]) -> String {
    let tag = hmac::sign(key, of);
    hex::encode(tag.as_ref().get(..8).unwrap_or_default())
}

fn derived_key(master_key: &[u8; 32]) -> hmac::Key {
    let master_key = hmac::Key::new(hmac::HMAC_SHA256, master_key);
    hmac::Key::new(
        hmac::HMAC_SHA256,
        hmac::sign(&master_key, KEY_LABEL).as_ref(),
    )
}

/// How a check of plugins uses the cache.
#[derive(Clone, Copy)]
pub enum CacheAccess<'k> {
    /// Compiles every component.
    None,
    /// Uses cached components and writes nothing.
    Read(&'k CacheKey),
    /// Uses cached components, and writes newly compiled components to the cache.
    ReadWrite(&'k CacheKey),
}

/// The directory of compiled components.
pub(crate) struct Cache {
    directory: PathBuf,
    key: CacheKey,
    engine_hash: String,
    is_read_only: bool,
    /// The files requested so far.
    used: Mutex<BTreeSet<PathBuf>>,
}

/// The extensions of cache files. Their names begin with the digest of a component.
pub const CACHE_EXTENSIONS: [&str; 2] = [COMPILED, REPORT];

impl Cache {
    pub(crate) fn open(
        directory: &Path,
        key: &CacheKey,
        engine: &Engine,
    ) -> Result<Self, LoadError> {
        prepare(directory)?;
        Ok(Self {
            is_read_only: false,
            ..Self::read_only(directory, key, engine)
        })
    }

    /// Opens or creates a directory of the current user. Its key is a file in it, which is also created.
    pub(crate) fn of_user(directory: &Path, engine: &Engine) -> Result<Self, LoadError> {
        prepare(directory)?;
        let key = user_key(directory).map_err(|source| LoadError::CacheDirectory {
            path: directory.to_owned(),
            source,
        })?;
        let key = CacheKey::new(&key);
        Ok(Self {
            is_read_only: false,
            ..Self::read_only(directory, &key, engine)
        })
    }

    /// Opens the directory without creating, checking or writing anything. It need not exist.
    pub(crate) fn read_only(directory: &Path, key: &CacheKey, engine: &Engine) -> Self {
        Self {
            directory: directory.to_owned(),
            key: key.clone(),
            engine_hash: engine_hash(engine),
            is_read_only: true,
            used: Mutex::default(),
        }
    }

    /// Returns the paths requested so far. A file may be missing if it could not be written.
    pub(crate) fn used_files(&self) -> BTreeSet<PathBuf> {
        self.used.lock().clone()
    }

    /// Returns the component with this digest from the cache, or compiles it and writes it to the cache.
    pub(crate) fn component(
        &self,
        compiler: &Compiler,
        engine: &Engine,
        component_digest: &str,
        bytes: &[u8],
    ) -> Result<Component, PluginRefusedError> {
        let (engine_hash, tag) = (&self.engine_hash, key_tag(&self.key.0));
        let name = format!("{component_digest}-{engine_hash}-{tag}.{COMPILED}");
        self.used.lock().insert(self.directory.join(&name));
        if let Some(code) = self.cached(&name) {
            // Code that exceeds the engine's limits is refused without compiling it again.
            return load_code(engine, &code).map_err(PluginRefusedError::TooDemanding);
        }
        let (code, component) = compile(compiler, engine, bytes)?;
        self.store(&name, &code);
        Ok(component)
    }

    /// Returns the content of a file. Logs a damaged file.
    fn cached(&self, name: &str) -> Option<Vec<u8>> {
        match self.read(name) {
            Ok(content) => content,
            Err(cause) => {
                let path = self.directory.join(name);
                tracing::warn!(path = %path.display(), %cause, "ignored a plugin cache file");
                None
            }
        }
    }

    /// Returns the verified content of a file; `None` if it does not exist.
    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        let mut file = match fs::read(self.directory.join(name)) {
            Ok(file) => file,
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(cause) => return Err(cause),
        };
        let is_ours = file.split_at_checked(TAG_BYTES).is_some_and(|(tag, code)| {
            hmac::verify(&self.key.0, &authenticated(name, code), tag).is_ok()
        });
        if !is_ours {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the file is damaged or was written under another key",
            ));
        }
        file.drain(..TAG_BYTES);
        Ok(Some(file))
    }

    /// Writes a file. Failures are only logged: they merely slow down the next start.
    fn store(&self, name: &str, content: &[u8]) {
        if self.is_read_only {
            return;
        }
        if let Err(cause) = self.write(name, content) {
            let path = self.directory.join(name);
            tracing::warn!(path = %path.display(), %cause, "could not write a plugin cache file");
        }
    }

    /// Writes a temporary file and renames it, so that no server reads a partial file.
    fn write(&self, name: &str, code: &[u8]) -> io::Result<()> {
        let tag = hmac::sign(&self.key.0, &authenticated(name, code));
        let mut file = tempfile::NamedTempFile::new_in(&self.directory)?;
        file.write_all(tag.as_ref())?;
        file.write_all(code)?;
        file.persist(self.directory.join(name))?;
        Ok(())
    }
}

/// Creates the directory, unless it exists. Only this user may access it.
fn prepare(directory: &Path) -> Result<(), LoadError> {
    let refused = |source| LoadError::CacheDirectory {
        path: directory.to_owned(),
        source,
    };
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
        .map_err(refused)?;
    let metadata = fs::metadata(directory).map_err(refused)?;
    let user = geteuid();
    if let Some(rule) = broken_rule_of_private_folder(&metadata, Some(user)) {
        return Err(LoadError::CacheDirectoryUnsafe {
            path: directory.to_owned(),
            rule,
        });
    }
    Ok(())
}

/// Returns the rule that a folder breaks if other users than its owner can access it, as the predicate of a sentence. `None` as the
/// owner accepts any owner.
pub fn broken_rule_of_private_folder(
    folder: &fs::Metadata,
    owner: Option<Uid>,
) -> Option<&'static str> {
    if owner.is_some_and(|owner| folder.uid() != owner.as_raw()) {
        Some("must belong to the user that the server runs as")
    } else if folder.mode() & 0o077 != 0 {
        Some("must have the mode 0700, so that no other user can read or write it")
    } else {
        None
    }
}

/// Returns the key in a directory of the current user. Generates it if it does not exist.
fn user_key(directory: &Path) -> io::Result<Zeroizing<[u8; 32]>> {
    let path = directory.join(USER_KEY);
    if !path.try_exists()? {
        let mut key = Zeroizing::new([0; 32]);
        getrandom::fill(&mut *key).map_err(|_| io::Error::other("no random bytes"))?;
        // Only this user can read a temporary file.
        let mut file = tempfile::NamedTempFile::new_in(directory)?;
        file.write_all(&*key)?;
        match file.persist_noclobber(&path) {
            Err(cause) if cause.error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(cause.error);
            }
            // Another process may have been first.
            Ok(_) | Err(_) => {}
        }
    }
    let key = <[u8; 32]>::try_from(fs::read(&path)?);
    let malformed = |_| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            "the file key must have 32 bytes",
        )
    };
    key.map(Zeroizing::new).map_err(malformed)
}

/// Compiles a component. Returns the compiled code and the component loaded from it.
pub(crate) fn compile(
    compiler: &Compiler,
    engine: &Engine,
    bytes: &[u8],
) -> Result<(Vec<u8>, Component), PluginRefusedError> {
    let code = compiler.compile(engine, bytes)?;
    let component = load_code(engine, &code).map_err(PluginRefusedError::TooDemanding)?;
    Ok((code, component))
}

fn authenticated(name: &str, code: &[u8]) -> Vec<u8> {
    [name.as_bytes(), &[0], code].concat()
}

#[expect(
    unsafe_code,
    reason = "loading compiled code is the engine's only unsafe entry"
)]
fn load_code(engine: &Engine, code: &[u8]) -> wasmtime::Result<Component> {
    // SAFETY: this engine's compiler produced the code, either just now or earlier; in that case its HMAC was verified.
    unsafe { Component::deserialize(engine, code) }
}

/// Returns a hash of the engine's version and settings, which determine compiled code, in hexadecimal. It may differ between
/// releases of Rust; then components are compiled again.
fn engine_hash(engine: &Engine) -> String {
    let mut hasher = DefaultHasher::new();
    engine.precompile_compatibility_hash().hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::engine::new_engine;

    /// An empty component.
    const COMPONENT: &[u8] = b"\0asm\x0d\0\x01\0";

    /// Returns the component from the cache, or compiles it.
    fn component(
        cache: &Cache,
        engine: &Engine,
        digest: &str,
        bytes: &[u8],
    ) -> Result<Component, PluginRefusedError> {
        cache.component(&Compiler::ThisProcess, engine, digest, bytes)
    }

    fn cached_file(directory: &Path) -> PathBuf {
        fs::read_dir(directory)
            .unwrap()
            .next()
            .unwrap()
            .unwrap()
            .path()
    }

    #[test]
    fn a_cached_component_is_used_and_a_modified_one_is_recompiled() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("deep").join("cache");
        let engine = new_engine(1, 1 << 20).unwrap();
        let key = CacheKey::new(&[1; 32]);
        let cache = Cache::open(&path, &key, &engine).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
        component(&cache, &engine, "d", COMPONENT).unwrap();
        // With a cached file, the bytes are not read at all.
        component(&cache, &engine, "d", b"nonsense").unwrap();
        assert_eq!(cache.used_files(), BTreeSet::from([cached_file(&path)]));
        let whole = fs::read(cached_file(&path)).unwrap();
        for position in [0, TAG_BYTES, whole.len() - 1] {
            let mut damaged = whole.clone();
            damaged[position] ^= 1;
            fs::write(cached_file(&path), &damaged).unwrap();
            assert!(
                component(&cache, &engine, "d", b"nonsense").is_err(),
                "byte {position}"
            );
            component(&cache, &engine, "d", COMPONENT).unwrap();
            assert_eq!(fs::read(cached_file(&path)).unwrap(), whole);
        }
        fs::write(cached_file(&path), b"short").unwrap();
        assert!(component(&cache, &engine, "d", b"nonsense").is_err());
    }

    #[test]
    fn a_cached_file_is_not_used_for_another_component_or_key() {
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let engine = new_engine(1, 1 << 20).unwrap();
        let key = CacheKey::new(&[1; 32]);
        let cache = Cache::open(directory.path(), &key, &engine).unwrap();
        component(&cache, &engine, "d", COMPONENT).unwrap();
        let others = CacheKey::new(&[2; 32]);
        let other = Cache::open(directory.path(), &others, &engine).unwrap();
        assert!(component(&other, &engine, "d", b"nonsense").is_err());
        let renamed = other.directory.join(format!(
            "d-{}-{}.{COMPILED}",
            other.engine_hash,
            key_tag(&other.key.0)
        ));
        fs::copy(cached_file(directory.path()), &renamed).unwrap();
        assert!(component(&other, &engine, "d", b"nonsense").is_err());
        fs::remove_file(renamed).unwrap();
        let name = cached_file(directory.path())
            .file_name()
            .unwrap()
            .to_owned();
        let copy = name.to_str().unwrap().replacen('d', "e", 1);
        fs::copy(cached_file(directory.path()), directory.path().join(copy)).unwrap();
        assert!(component(&cache, &engine, "e", b"nonsense").is_err());
    }

    #[test]
    fn servers_with_different_keys_keep_separate_files() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("cache");
        let engine = new_engine(1, 1 << 20).unwrap();
        let keys = [[1; 32], [2; 32]].map(|key| CacheKey::new(&key));
        let cache = |keys| Cache::open(&path, keys, &engine).unwrap();
        for keys in &keys {
            component(&cache(keys), &engine, "d", COMPONENT).unwrap();
        }
        let files = || {
            let files = fs::read_dir(&path).unwrap();
            let files = files.map(|entry| fs::read(entry.unwrap().path()).unwrap());
            files.collect::<BTreeSet<_>>()
        };
        let written = files();
        assert_eq!(written.len(), 2);
        for keys in keys.iter().chain(&keys) {
            component(&cache(keys), &engine, "d", b"nonsense").unwrap();
        }
        assert_eq!(files(), written);
    }

    #[test]
    fn a_directory_that_others_can_access_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o710)).unwrap();
        let engine = new_engine(1, 1 << 20).unwrap();
        let key = CacheKey::new(&[1; 32]);
        let Err(refused) = Cache::open(directory.path(), &key, &engine) else {
            panic!("accepted")
        };
        assert!(
            refused.to_string().contains("must have the mode 0700"),
            "{refused}"
        );
    }
}
