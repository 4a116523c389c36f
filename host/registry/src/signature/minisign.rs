//! Signatures by minisign: Ed25519, of the component itself, or of its BLAKE2b-512.

use minisign_verify::{Error, PublicKey, Signature};

use super::{KeyMalformed, SIGNATURE_EXTENSION, SignatureRefused, tag};
use crate::{
    Fault, PinnedReference, Registry,
    manifest::{MEDIA_TYPE, MINISIGN_MEDIA_TYPE, Manifest},
    pull::{MANIFEST_BYTES_MAX, blob},
};

/// A public key of minisign's.
#[derive(Clone)]
pub struct MinisignKey(PublicKey);

impl MinisignKey {
    /// Reads a key, as it stands in the second line of `minisign.pub`.
    ///
    /// # Errors
    /// When it is none.
    pub fn read(text: &str) -> Result<Self, KeyMalformed> {
        let key = PublicKey::from_base64(text.trim()).map_err(|_| KeyMalformed::Minisign)?;
        Ok(Self(key))
    }

    pub(super) fn verify(
        &self,
        component: &[u8],
        signature: &[u8],
    ) -> Result<(), SignatureRefused> {
        let signature = read(signature)?;
        let verified = self.0.verify(component, &signature, ALLOWS_UNHASHED);
        verified.map_err(|cause| match cause {
            Error::UnexpectedKeyId => SignatureRefused::OtherKey,
            _ => SignatureRefused::Wrong,
        })
    }
}

/// A file of minisign's.
///
/// # Errors
/// When it is none.
pub(super) fn read(file: &[u8]) -> Result<Signature, SignatureRefused> {
    let text = std::str::from_utf8(file).map_err(|_| SignatureRefused::Malformed)?;
    Signature::decode(text).map_err(|_| SignatureRefused::Malformed)
}

/// The file with the signature, from the registry.
pub(super) async fn fetch(
    registry: &Registry,
    reference: &PinnedReference,
) -> Result<Vec<u8>, Fault> {
    let repository = &reference.place.repository;
    let tag = tag(reference.digest(), SIGNATURE_EXTENSION);
    let url = registry.url(repository, &format!("manifests/{tag}"));
    let what = "the manifest of the signature";
    let manifest = registry.get(url, what, Some(MEDIA_TYPE), MANIFEST_BYTES_MAX);
    let manifest = manifest.await.map_err(|fault| missing(fault, &tag))?;
    let manifest = Manifest::read(&manifest)?;
    let mut layers = manifest.layers.iter();
    let layer = layers.find(|layer| layer.media_type == MINISIGN_MEDIA_TYPE);
    let layer = layer.ok_or(SignatureRefused::Malformed)?;
    blob(registry, repository, layer, "the signature", BYTES_MAX).await
}

/// That there is no tag for it means that it is not signed.
pub(super) fn missing(fault: Fault, tag: &str) -> Fault {
    match fault {
        Fault::NotFound { .. } => {
            SignatureRefused::Missing(format!("{tag} in its repository")).into()
        }
        other => other,
    }
}

/// Whether signatures are taken that are of the component itself, as older releases of minisign make them by default.
const ALLOWS_UNHASHED: bool = true;
/// The largest file with a signature, in bytes; its comments have no length of their own.
pub(super) const BYTES_MAX: u64 = 16 * 1024;
