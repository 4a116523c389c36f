//! Signatures of components, and the keys that verify them.
//!
//! In a registry, signatures are in the repository of the component, as cosign defines it: the tag is derived from the digest of
//! the component's manifest. It is `sha256-<digits>.sig` for cosign (`cosign.rs`), and `sha256-<digits>.minisig` for minisign,
//! with the signature file as the only layer (`minisign.rs`). The minisign signature of a file has the file's name with
//! `.minisig` appended, as `minisign -S` writes it.

mod cosign;
mod minisign;

use std::{
    io,
    path::{Path, PathBuf},
};

pub use cosign::CosignKey;
pub use minisign::MinisignKey;

use crate::{
    Cache, Digest, Fault, PinnedReference, Registry,
    cache::{CacheEntry, read_if_exists},
};

/// The key to verify the signature of a component with.
#[derive(Clone)]
pub enum SignatureKey {
    /// A cosign key, which signs manifests.
    Cosign(CosignKey),
    /// A minisign key, which signs components.
    Minisign(MinisignKey),
}

/// A malformed public key.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyMalformed {
    /// The text is not a cosign key of a supported kind.
    #[error("must be a P-256 public key in PEM format, such as cosign.pub")]
    Cosign,
    /// The text is not a minisign key.
    #[error("must be a minisign public key: 56 characters, the second line of minisign.pub")]
    Minisign,
}

/// Why a signature was rejected.
#[derive(Debug, thiserror::Error)]
pub enum SignatureRefused {
    /// A cosign key is configured for a file.
    #[error("a cosign key can only verify components in a registry; sign files with minisign")]
    CosignOfFile,
    /// The signature is malformed.
    #[error("its signature is malformed")]
    Malformed,
    /// There is no signature.
    #[error("it is not signed: there is no {0}")]
    Missing(String),
    /// The signature is for another manifest.
    #[error("its signature by this key is for another manifest, {0}")]
    OfAnother(String),
    /// The signature is by another key.
    #[error("its signature is by another key than the configured one")]
    OtherKey,
    /// The signature file is unreadable.
    #[error("its signature can't be read")]
    Unreadable(#[source] io::Error),
    /// The signature does not match the signed bytes.
    #[error(
        "its signature does not match: it is for another component, or the signature was modified"
    )]
    Wrong,
}

impl SignatureKey {
    /// Verifies the signature of a component from a registry. Returns whether the signature came from the cache. If the cached
    /// signature does not verify, for example after the key was changed, pulls the signature from the registry.
    pub(crate) async fn verify(
        &self,
        registry: &Registry,
        reference: &PinnedReference,
        component: &[u8],
        cache: &Cache,
    ) -> Result<bool, Fault> {
        let digest = reference.digest();
        let (kind, bytes_max) = match self {
            Self::Cosign(_) => (CacheEntry::CosignSignatures, cosign::CACHED_BYTES_MAX),
            Self::Minisign(_) => (CacheEntry::MinisignSignature, minisign::BYTES_MAX),
        };
        let cached = cache.read(kind, digest, bytes_max);
        let cached = cached.map(|signature| self.verify_bytes(digest, component, &signature));
        if let Some(Ok(())) = cached {
            return Ok(true);
        }
        let fetched = match self {
            Self::Cosign(_) => cosign::fetch(registry, reference).await,
            Self::Minisign(_) => minisign::fetch(registry, reference).await,
        };
        let signature = match (fetched, cached) {
            // The error for the cached signature is more helpful than that the registry is unreachable.
            (Err(Fault::Unreachable(_)), Some(Err(refused))) => return Err(refused.into()),
            (fetched, _) => fetched?,
        };
        self.verify_bytes(digest, component, &signature)?;
        cache.write(kind, digest, &signature);
        Ok(false)
    }

    /// Verifies the component, read from this file, against the signature next to the file.
    ///
    /// # Errors
    /// If there is no valid signature by this key.
    pub fn verify_file(&self, file: &Path, component: &[u8]) -> Result<(), SignatureRefused> {
        let Self::Minisign(key) = self else {
            return Err(SignatureRefused::CosignOfFile);
        };
        let path = signature_path(file);
        let signature = read_if_exists(&path, minisign::BYTES_MAX)
            .map_err(SignatureRefused::Unreadable)?
            .ok_or_else(|| SignatureRefused::Missing(path.display().to_string()))?;
        key.verify(component, &signature)
    }

    fn verify_bytes(
        &self,
        manifest: &Digest,
        component: &[u8],
        signature: &[u8],
    ) -> Result<(), SignatureRefused> {
        match self {
            Self::Cosign(key) => key.verify(manifest, signature),
            Self::Minisign(key) => key.verify(component, signature),
        }
    }
}

/// Reads the minisign signature of a file, if there is one.
///
/// # Errors
/// If it is unreadable or malformed.
pub(crate) fn signature_of_file(file: &Path) -> Result<Option<Vec<u8>>, SignatureRefused> {
    let signature = read_if_exists(&signature_path(file), minisign::BYTES_MAX)
        .map_err(SignatureRefused::Unreadable)?;
    if let Some(signature) = &signature {
        minisign::read(signature)?;
    }
    Ok(signature)
}

fn signature_path(file: &Path) -> PathBuf {
    let mut path = file.to_owned();
    path.as_mut_os_string().push(SIGNATURE_EXTENSION);
    path
}

/// Returns the tag for the signature of a manifest.
pub(crate) fn tag(manifest: &Digest, end: &str) -> String {
    format!("sha256-{}{end}", manifest.hexadecimal())
}

/// The suffix that a minisign signature file adds to the name of the signed file. Also the suffix of its tag in a registry.
pub const SIGNATURE_EXTENSION: &str = ".minisig";
