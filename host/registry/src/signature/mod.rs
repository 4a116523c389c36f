//! Signatures of components, and the keys that verify them.
//!
//! In the registry, a signature is where cosign puts its own: in the repository of the component, under a tag made of the
//! digest of its manifest. For cosign that is `sha256-<digits>.sig` (`cosign.rs`); for minisign `sha256-<digits>.minisig`, with
//! one layer that is the file that `minisign -S` writes (`minisign.rs`). Beside a file, minisign's signature has the name of
//! the file with `.minisig` added, as `minisign -S` gives it.

mod cosign;
mod minisign;

use std::{io, path::Path};

pub use cosign::CosignKey;
pub use minisign::MinisignKey;

use crate::{
    Cache, Digest, Fault, PinnedReference, Registry,
    cache::{Kept, read_if_there},
};

/// The key that must have signed a component.
#[derive(Clone)]
pub enum SignatureKey {
    /// One of cosign's, which signs manifests.
    Cosign(CosignKey),
    /// One of minisign's, which signs components.
    Minisign(MinisignKey),
}

/// Why a text is no public key.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyMalformed {
    /// It is none of cosign's that is known here.
    #[error("it is no public key of P-256 in PEM, as cosign.pub has it")]
    Cosign,
    /// It is none of minisign's.
    #[error("it is no public key of minisign: 56 characters, the second line of minisign.pub")]
    Minisign,
}

/// Why a signature is refused.
#[derive(Debug, thiserror::Error)]
pub enum SignatureRefused {
    /// A key of cosign's is configured for a file.
    #[error("cosign signs what is in a registry; a file can be signed by minisign")]
    CosignOfFile,
    /// It is no signature at all.
    #[error("its signature is malformed")]
    Malformed,
    /// There is none.
    #[error("it is not signed: there is no {0}")]
    Missing(String),
    /// It is of another manifest.
    #[error("the signature by this key is of another manifest, {0}")]
    OfAnother(String),
    /// It is by another key.
    #[error("its signature is by another key than the configured one")]
    OtherKey,
    /// The file with it can't be read.
    #[error("its signature can't be read")]
    Unreadable(#[source] io::Error),
    /// It does not fit what is signed.
    #[error(
        "its signature does not fit it: it was signed as something else, or the signature was changed"
    )]
    Wrong,
}

impl SignatureKey {
    /// Verifies the signature of a component from a registry, and says whether it is one that was kept. Where the kept one does not
    /// do, as after the key was changed, the registry is asked for another.
    pub(crate) async fn verify(
        &self,
        registry: &Registry,
        reference: &PinnedReference,
        component: &[u8],
        cache: &Cache,
    ) -> Result<bool, Fault> {
        let digest = reference.digest();
        let (kind, bytes_max) = match self {
            Self::Cosign(_) => (Kept::CosignSignatures, cosign::KEPT_BYTES_MAX),
            Self::Minisign(_) => (Kept::MinisignSignature, minisign::BYTES_MAX),
        };
        let kept = cache.read(kind, digest, bytes_max);
        let kept = kept.map(|signature| self.verify_bytes(digest, component, &signature));
        if let Some(Ok(())) = kept {
            return Ok(true);
        }
        let fetched = match self {
            Self::Cosign(_) => cosign::fetch(registry, reference).await,
            Self::Minisign(_) => minisign::fetch(registry, reference).await,
        };
        let signature = match (fetched, kept) {
            // What is wrong with the kept one is of more use than that there is no other.
            (Err(Fault::Unreachable(_)), Some(Err(refused))) => return Err(refused.into()),
            (fetched, _) => fetched?,
        };
        self.verify_bytes(digest, component, &signature)?;
        cache.keep(kind, digest, &signature);
        Ok(false)
    }

    /// Verifies the signature beside a file, whose bytes these are.
    ///
    /// # Errors
    /// When there is none by this key.
    pub fn verify_file(&self, file: &Path, component: &[u8]) -> Result<(), SignatureRefused> {
        let Self::Minisign(key) = self else {
            return Err(SignatureRefused::CosignOfFile);
        };
        let mut beside = file.to_owned();
        beside.as_mut_os_string().push(SIGNATURE_EXTENSION);
        let signature = read_if_there(&beside, minisign::BYTES_MAX)
            .map_err(SignatureRefused::Unreadable)?
            .ok_or_else(|| SignatureRefused::Missing(beside.display().to_string()))?;
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

/// Reads the signature that is beside a file, if there is one.
///
/// # Errors
/// When it can't be read, or is none of minisign's.
pub(crate) fn beside(file: &Path) -> Result<Option<Vec<u8>>, SignatureRefused> {
    let mut beside = file.to_owned();
    beside.as_mut_os_string().push(SIGNATURE_EXTENSION);
    let signature =
        read_if_there(&beside, minisign::BYTES_MAX).map_err(SignatureRefused::Unreadable)?;
    if let Some(signature) = &signature {
        minisign::read(signature)?;
    }
    Ok(signature)
}

/// The tag under which the signature of a manifest is.
pub(crate) fn tag(manifest: &Digest, end: &str) -> String {
    format!("sha256-{}{end}", manifest.hexadecimal())
}

/// What the name of a file with minisign's signature has behind the name of what it signs; and its tag in a registry.
pub const SIGNATURE_EXTENSION: &str = ".minisig";
