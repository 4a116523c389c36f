//! minisign signatures: Ed25519 over the component itself or its BLAKE2b-512 hash.

use minisign_verify::{Error, PublicKey, Signature};

use super::{KeyMalformed, SIGNATURE_EXTENSION, SignatureRefused, tag};
use crate::{
    Fault, PinnedReference, Registry,
    manifest::{MEDIA_TYPE, MINISIGN_MEDIA_TYPE, Manifest},
    pull::{MANIFEST_BYTES_MAX, blob},
};

/// A minisign public key.
#[derive(Clone)]
pub struct MinisignKey(PublicKey);

impl MinisignKey {
    /// Parses a public key: the second line of `minisign.pub`.
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

/// Parses a minisign signature file.
pub(super) fn read(file: &[u8]) -> Result<Signature, SignatureRefused> {
    let text = std::str::from_utf8(file).map_err(|_| SignatureRefused::Malformed)?;
    Signature::decode(text).map_err(|_| SignatureRefused::Malformed)
}

/// Pulls the signature file of a component.
pub(super) async fn fetch(
    registry: &Registry,
    reference: &PinnedReference,
) -> Result<Vec<u8>, Fault> {
    let repository = &reference.repository.name;
    let tag = tag(reference.digest(), SIGNATURE_EXTENSION);
    let url = registry.url(repository, &format!("manifests/{tag}"));
    let resource = "the manifest of the signature";
    let manifest = registry.get(url, resource, Some(MEDIA_TYPE), MANIFEST_BYTES_MAX);
    let manifest = manifest.await.map_err(|fault| missing(fault, &tag))?;
    let manifest = Manifest::read(&manifest)?;
    let mut layers = manifest.layers.iter();
    let layer = layers.find(|layer| layer.media_type == MINISIGN_MEDIA_TYPE);
    let layer = layer.ok_or(SignatureRefused::Malformed)?;
    blob(registry, repository, layer, "the signature", BYTES_MAX).await
}

/// Reports a missing tag as a missing signature.
pub(super) fn missing(fault: Fault, tag: &str) -> Fault {
    match fault {
        Fault::NotFound { .. } => {
            SignatureRefused::Missing(format!("{tag} in its repository")).into()
        }
        other => other,
    }
}

/// Accept signatures over the component itself, the default of older minisign releases.
const ALLOWS_UNHASHED: bool = true;
/// The largest signature file, in bytes. minisign does not limit the comments in it.
pub(super) const BYTES_MAX: u64 = 16 * 1024;
