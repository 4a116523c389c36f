//! Compiled components on disk, so that a warm start compiles nothing.
//!
//! Loading compiled code trusts it, so each file begins with an HMAC under a key that only servers have, over the file's
//! name and contents. It follows from the encryption key, so a change of that changes it: files under the keys before are
//! read as well, and kept under the new one too, so that the change costs no compilation. The name says which component it
//! was made of, by which engine and under which key, so that servers with different keys can share the directory. What was
//! found out about a component is next to it, kept in the same way ([`verdicts`]).

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

use crate::{
    component_file::hexadecimal,
    refused::{LoadRefused, Refusal},
};

/// What the key of the cache is derived for.
const KEY_LABEL: &[u8] = b"keywright compiled components, version 1";
/// What names the key in the names of files.
const KEY_TAG_LABEL: &[u8] = b"the name of this key";
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
}

/// What names a key in the names of files. The key can't be derived from it.
fn key_tag(key: &hmac::Key) -> String {
    tag(key, KEY_TAG_LABEL)
}

/// The first half of an HMAC, in hexadecimal, for the name of a file.
fn tag(key: &hmac::Key, of: &[u8]) -> String {
    let tag = hmac::sign(key, of);
    hexadecimal(tag.as_ref().get(..8).unwrap_or_default())
}

fn purposeful(master_key: &[u8; 32]) -> hmac::Key {
    let master_key = hmac::Key::new(hmac::HMAC_SHA256, master_key);
    hmac::Key::new(
        hmac::HMAC_SHA256,
        hmac::sign(&master_key, KEY_LABEL).as_ref(),
    )
}

/// How plugins that are only checked use the cache.
#[derive(Clone, Copy)]
pub enum CacheAccess<'k> {
    /// Every component is compiled.
    None,
    /// Components in the cache are not compiled. Nothing is written to it.
    Read(&'k CacheKeys),
    /// Components in the cache are not compiled. Others are compiled and written to it.
    ReadWrite(&'k CacheKeys),
}

/// The directory of compiled components.
pub(crate) struct Cache {
    directory: PathBuf,
    keys: CacheKeys,
    engine_hash: String,
    is_read_only: bool,
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
            is_read_only: false,
            ..Self::read_only(directory, keys, engine)
        })
    }

    /// Uses the directory as it is, whether it exists or not, and writes nothing there.
    pub(crate) fn read_only(directory: &Path, keys: &CacheKeys, engine: &Engine) -> Self {
        Self {
            directory: directory.to_owned(),
            keys: keys.clone(),
            engine_hash: engine_hash(engine),
            is_read_only: true,
            used: Mutex::default(),
        }
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
        let name_under = |key| {
            let (engine, key) = (&self.engine_hash, key_tag(key));
            format!("{component_digest}-{engine}-{key}.{COMPILED}")
        };
        let name = name_under(&self.keys.writing);
        self.use_file(&self.directory.join(&name));
        if let Some((_, component)) = self.kept_component(engine, &self.keys.writing, &name) {
            return Ok(component);
        }
        let mut others = self.keys.others.iter();
        let kept = others.find_map(|key| self.kept_component(engine, key, &name_under(key)));
        let (code, component) = match kept {
            Some(kept) => kept,
            None => compile(engine, bytes)?,
        };
        self.keep(&name, &code);
        Ok(component)
    }

    fn kept_component(
        &self,
        engine: &Engine,
        key: &hmac::Key,
        name: &str,
    ) -> Option<(Vec<u8>, Component)> {
        let code = self.kept(key, name)?;
        match load_code(engine, &code) {
            Ok(component) => Some((code, component)),
            Err(cause) => {
                self.warn_of_replacement(name, &format!("{cause:#}"));
                None
            }
        }
    }

    /// The content of a file that was written under a key.
    fn kept(&self, key: &hmac::Key, name: &str) -> Option<Vec<u8>> {
        match self.read(key, name) {
            Ok(kept) => kept,
            Err(cause) => {
                self.warn_of_replacement(name, &cause.to_string());
                None
            }
        }
    }

    /// The content of a file that is ours; nothing when there is no file.
    fn read(&self, key: &hmac::Key, name: &str) -> io::Result<Option<Vec<u8>>> {
        let mut file = match fs::read(self.directory.join(name)) {
            Ok(file) => file,
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(cause) => return Err(cause),
        };
        let is_ours = file
            .split_at_checked(TAG_BYTES)
            .is_some_and(|(tag, code)| hmac::verify(key, &authenticated(name, code), tag).is_ok());
        if !is_ours {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "it is damaged or not ours",
            ));
        }
        file.drain(..TAG_BYTES);
        Ok(Some(file))
    }

    /// Writes a file, without which all goes on, though not as fast at the next start.
    fn keep(&self, name: &str, content: &[u8]) {
        if self.is_read_only {
            return;
        }
        if let Err(cause) = self.write(name, content) {
            let path = self.directory.join(name);
            tracing::warn!(path = %path.display(), %cause, "what was compiled or found out of a plugin could not be kept");
        }
    }

    /// Writes a file beside the place and moves it there, so that nobody ever reads a part of it.
    fn write(&self, name: &str, code: &[u8]) -> io::Result<()> {
        let tag = hmac::sign(&self.keys.writing, &authenticated(name, code));
        let mut file = tempfile::NamedTempFile::new_in(&self.directory)?;
        file.write_all(tag.as_ref())?;
        file.write_all(code)?;
        file.persist(self.directory.join(name))?;
        Ok(())
    }

    fn warn_of_replacement(&self, name: &str, cause: &str) {
        let path = self.directory.join(name);
        tracing::warn!(path = %path.display(), cause, "recompiled a component from the cache");
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
mod tests;
