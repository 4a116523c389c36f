//! Signatures of components, and the keys that verify them.
//!
//! In a registry, signatures are in the repository of the component, as cosign defines it: the tag is derived from the digest of
//! the component's manifest. It is `sha256-<digits>.sig` for cosign, and `sha256-<digits>.minisig` for minisign, with the
//! signature file as the only layer. The minisign signature of a file has the file's name with `.minisig` appended, as
//! `minisign -S` writes it.
//!
//! cosign signs with ECDSA (P-256 and SHA-256) a payload that contains the digest of the manifest (sigstore/cosign,
//! `specs/SIGNATURE_SPEC.md`, and the format "simple signing" of containers/image). minisign signs with Ed25519 the component
//! itself or its BLAKE2b-512 hash.

use std::path::{Path, PathBuf};

use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1, ParsedPublicKey};
use base64::{Engine, prelude::BASE64_STANDARD};
use keywright_core::text::sanitized;
use minisign_verify::{PublicKey, Signature};
use rustls::pki_types::{SubjectPublicKeyInfoDer, pem::PemObject};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    Cache, Digest, PinnedReference, Registry, RegistryError, SignatureError,
    cache::{CacheEntry, read_if_exists},
    manifest::{MANIFEST_BYTES_MAX, MEDIA_TYPE, MINISIGN_MEDIA_TYPE, Manifest, blob},
};

/// The key that verifies the signature of a component.
#[derive(Clone)]
pub enum SignatureKey {
    /// A cosign key, which signs manifests.
    Cosign(CosignKey),
    /// A minisign key, which signs components.
    Minisign(MinisignKey),
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
    ) -> Result<bool, RegistryError> {
        let digest = reference.digest();
        let (kind, bytes_max) = match self {
            Self::Cosign(_) => (CacheEntry::CosignSignatures, COSIGN_CACHED_BYTES_MAX),
            Self::Minisign(_) => (CacheEntry::MinisignSignature, MINISIGN_BYTES_MAX),
        };
        let cached = cache.read(kind, digest, bytes_max);
        let cached = cached.map(|signature| self.verify_bytes(digest, component, &signature));
        if let Some(Ok(())) = cached {
            return Ok(true);
        }
        let fetched = match self {
            Self::Cosign(_) => fetch_cosign_signatures(registry, reference).await,
            Self::Minisign(_) => fetch_minisign_signature(registry, reference).await,
        };
        let signature = match (fetched, cached) {
            // The error for the cached signature is more helpful than the error that the registry is unreachable.
            (Err(RegistryError::Unreachable(_)), Some(Err(refused))) => return Err(refused.into()),
            (fetched, _) => fetched?,
        };
        self.verify_bytes(digest, component, &signature)?;
        cache.write(kind, digest, &signature);
        Ok(false)
    }

    /// Verifies the component, read from this file, against the signature next to the file.
    pub fn verify_file(&self, file: &Path, component: &[u8]) -> Result<(), SignatureError> {
        let Self::Minisign(key) = self else {
            return Err(SignatureError::CosignOfFile);
        };
        let path = signature_path(file);
        let signature = read_if_exists(&path, MINISIGN_BYTES_MAX)
            .map_err(SignatureError::Unreadable)?
            .ok_or_else(|| SignatureError::Missing(path.display().to_string()))?;
        key.verify(component, &signature)
    }

    fn verify_bytes(
        &self,
        manifest: &Digest,
        component: &[u8],
        signature: &[u8],
    ) -> Result<(), SignatureError> {
        match self {
            Self::Cosign(key) => key.verify(manifest, signature),
            Self::Minisign(key) => key.verify(component, signature),
        }
    }
}

/// Reads the minisign signature of a file, if there is one.
pub(crate) fn signature_of_file(file: &Path) -> Result<Option<Vec<u8>>, SignatureError> {
    let signature = read_if_exists(&signature_path(file), MINISIGN_BYTES_MAX)
        .map_err(SignatureError::Unreadable)?;
    if let Some(signature) = &signature {
        parse_minisign(signature)?;
    }
    Ok(signature)
}

fn signature_path(file: &Path) -> PathBuf {
    let mut path = file.to_owned();
    path.as_mut_os_string().push(SIGNATURE_EXTENSION);
    path
}

pub(crate) fn tag(manifest: &Digest, end: &str) -> String {
    format!("sha256-{}{end}", manifest.hexadecimal())
}

/// The suffix that a minisign signature file adds to the name of the signed file. Also the suffix of its tag in a registry.
pub const SIGNATURE_EXTENSION: &str = ".minisig";

/// A cosign public key.
#[derive(Clone)]
pub struct CosignKey(ParsedPublicKey);

/// A signature with the payload that it signs.
#[derive(Debug, Deserialize, Serialize)]
struct CosignSignature {
    /// In base64.
    payload: String,
    /// In base64, of DER.
    signature: String,
}

impl CosignKey {
    /// Parses a public key in the format of `cosign.pub`. The error is the violated rule.
    pub fn read(pem: &str) -> Result<Self, &'static str> {
        let der = SubjectPublicKeyInfoDer::from_pem_slice(pem.as_bytes()).ok();
        let key =
            der.and_then(|der| ParsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, der.as_ref()).ok());
        key.map(Self)
            .ok_or("must contain a P-256 public key in PEM format, such as cosign.pub")
    }

    /// Verifies that at least one of the signatures is by this key and for this manifest.
    fn verify(&self, manifest: &Digest, signatures: &[u8]) -> Result<(), SignatureError> {
        let signatures: Vec<CosignSignature> =
            keywright_json::read_bytes(signatures).map_err(|_| SignatureError::Malformed)?;
        let mut refusal = SignatureError::OtherKey;
        for payload in signatures.iter().filter_map(|signed| self.payload(signed)) {
            let payload: Value =
                keywright_json::read_bytes(&payload).map_err(|_| SignatureError::Malformed)?;
            let field = |pointer| {
                let field = payload.pointer(pointer).and_then(Value::as_str);
                field.ok_or(SignatureError::Malformed)
            };
            let named = field("/critical/image/docker-manifest-digest")?;
            if field("/critical/type")? != COSIGN_PAYLOAD_TYPE {
                refusal = SignatureError::Malformed;
            } else if named == manifest.to_string() {
                return Ok(());
            } else {
                refusal = SignatureError::OfAnother(sanitized(named));
            }
        }
        Err(refusal)
    }

    fn payload(&self, signed: &CosignSignature) -> Option<Vec<u8>> {
        let payload = BASE64_STANDARD.decode(&signed.payload).ok()?;
        let signature = BASE64_STANDARD.decode(&signed.signature).ok()?;
        self.0.verify_sig(&payload, &signature).ok()?;
        Some(payload)
    }
}

/// Pulls all signatures of a manifest.
async fn fetch_cosign_signatures(
    registry: &Registry,
    reference: &PinnedReference,
) -> Result<Vec<u8>, RegistryError> {
    let repository = &reference.repository.name;
    let resource = "the manifest of the signatures";
    let manifest = signature_manifest(registry, reference, COSIGN_TAG_SUFFIX, resource).await?;
    let mut signatures = Vec::new();
    for layer in &manifest.layers {
        let Some(signature) = layer.annotations.get(COSIGN_ANNOTATION) else {
            continue;
        };
        if signatures.len() == COSIGN_SIGNATURES_MAX {
            break;
        }
        let bytes_max = COSIGN_PAYLOAD_BYTES_MAX;
        let payload = blob(registry, repository, layer, "the signed payload", bytes_max).await?;
        signatures.push(CosignSignature {
            payload: BASE64_STANDARD.encode(payload),
            signature: signature.clone(),
        });
    }
    if signatures.is_empty() {
        return Err(SignatureError::Malformed.into());
    }
    serde_json::to_vec(&signatures).map_err(|_| SignatureError::Malformed.into())
}

/// A minisign public key.
#[derive(Clone)]
pub struct MinisignKey(PublicKey);

impl MinisignKey {
    /// Parses a public key: the second line of `minisign.pub`. The error is the violated rule.
    pub fn read(text: &str) -> Result<Self, &'static str> {
        let key = PublicKey::from_base64(text.trim()).map(Self);
        key.map_err(
            |_| "must be a minisign public key: 56 characters, the second line of minisign.pub",
        )
    }

    fn verify(&self, component: &[u8], signature: &[u8]) -> Result<(), SignatureError> {
        let signature = parse_minisign(signature)?;
        let verified = self
            .0
            .verify(component, &signature, MINISIGN_ALLOWS_UNHASHED);
        verified.map_err(|cause| match cause {
            minisign_verify::Error::UnexpectedKeyId => SignatureError::OtherKey,
            _ => SignatureError::Wrong,
        })
    }
}

fn parse_minisign(file: &[u8]) -> Result<Signature, SignatureError> {
    let text = std::str::from_utf8(file).map_err(|_| SignatureError::Malformed)?;
    Signature::decode(text).map_err(|_| SignatureError::Malformed)
}

/// Pulls the signature file of a component.
async fn fetch_minisign_signature(
    registry: &Registry,
    reference: &PinnedReference,
) -> Result<Vec<u8>, RegistryError> {
    let repository = &reference.repository.name;
    let resource = "the manifest of the signature";
    let manifest = signature_manifest(registry, reference, SIGNATURE_EXTENSION, resource).await?;
    let mut layers = manifest.layers.iter();
    let layer = layers.find(|layer| layer.media_type == MINISIGN_MEDIA_TYPE);
    let layer = layer.ok_or(SignatureError::Malformed)?;
    let bytes_max = MINISIGN_BYTES_MAX;
    blob(registry, repository, layer, "the signature", bytes_max).await
}

/// Pulls the manifest of signatures. Reports a missing tag as a missing signature.
async fn signature_manifest(
    registry: &Registry,
    reference: &PinnedReference,
    tag_suffix: &str,
    resource: &'static str,
) -> Result<Manifest, RegistryError> {
    let tag = tag(reference.digest(), tag_suffix);
    let url = registry.url(&reference.repository.name, &format!("manifests/{tag}"));
    let manifest = registry.get(url, resource, Some(MEDIA_TYPE), MANIFEST_BYTES_MAX);
    match manifest.await {
        Ok(manifest) => Manifest::read(&manifest),
        Err(RegistryError::NotFound(_)) => {
            Err(SignatureError::Missing(format!("{tag} in its repository")).into())
        }
        Err(other) => Err(other),
    }
}

const COSIGN_TAG_SUFFIX: &str = ".sig";
const COSIGN_ANNOTATION: &str = "dev.cosignproject.cosign/signature";
const COSIGN_PAYLOAD_TYPE: &str = "cosign container image signature";
/// The maximum number of signatures to check for one manifest.
const COSIGN_SIGNATURES_MAX: usize = 16;
const COSIGN_PAYLOAD_BYTES_MAX: u64 = 16 * 1024;
/// An upper bound for a cached file: all payloads in base64, and the annotations of one manifest.
const COSIGN_CACHED_BYTES_MAX: u64 = 16 * COSIGN_PAYLOAD_BYTES_MAX * 2 + MANIFEST_BYTES_MAX;
/// Whether signatures over the component itself are accepted. Older minisign releases create them by default.
const MINISIGN_ALLOWS_UNHASHED: bool = true;
/// The largest signature file, in bytes. minisign does not limit the comments in it.
const MINISIGN_BYTES_MAX: u64 = 16 * 1024;

#[cfg(test)]
mod tests {
    use aws_lc_rs::{
        encoding::AsDer,
        rand::SystemRandom,
        signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair},
    };
    use serde_json::json;

    use super::*;

    struct Signer(EcdsaKeyPair);

    impl Signer {
        fn new() -> Self {
            Self(EcdsaKeyPair::generate(&ECDSA_P256_SHA256_ASN1_SIGNING).unwrap())
        }

        fn key(&self) -> CosignKey {
            let der = self.0.public_key().as_der().unwrap();
            let text = BASE64_STANDARD.encode(der.as_ref());
            let pem = format!("-----BEGIN PUBLIC KEY-----\n{text}\n-----END PUBLIC KEY-----\n");
            CosignKey::read(&pem).unwrap()
        }

        fn sign(&self, payload: &str) -> CosignSignature {
            let signature = self
                .0
                .sign(&SystemRandom::new(), payload.as_bytes())
                .unwrap();
            CosignSignature {
                payload: BASE64_STANDARD.encode(payload),
                signature: BASE64_STANDARD.encode(signature),
            }
        }
    }

    fn payload(manifest: &Digest, kind: &str) -> String {
        let image = json!({"docker-manifest-digest": manifest.to_string()});
        let identity = json!({"docker-reference": "h/a"});
        json!({"critical": {"identity": identity, "image": image, "type": kind}, "optional": null})
            .to_string()
    }

    #[test]
    fn one_signature_must_be_by_the_key_and_for_the_manifest() {
        let (signer, other) = (Signer::new(), Signer::new());
        let manifest = Digest::of(b"manifest");
        let good = payload(&manifest, COSIGN_PAYLOAD_TYPE);
        let of_another = payload(&Digest::of(b"another"), COSIGN_PAYLOAD_TYPE);
        let mut changed = signer.sign(&of_another);
        changed.payload = BASE64_STANDARD.encode(&good);
        let verified = |signatures: Vec<CosignSignature>| {
            let signatures = serde_json::to_vec(&signatures).unwrap();
            let verified = signer.key().verify(&manifest, &signatures);
            verified.map_err(|refused| refused.to_string())
        };
        let error = |refused: SignatureError| Err(refused.to_string());
        assert_eq!(verified(vec![signer.sign(&good)]), Ok(()));
        let several = vec![
            other.sign(&good),
            signer.sign(&of_another),
            signer.sign(&good),
        ];
        assert_eq!(verified(several), Ok(()));
        for (signed, refused) in [
            (other.sign(&good), SignatureError::OtherKey),
            (changed, SignatureError::OtherKey),
            (
                signer.sign(&of_another),
                SignatureError::OfAnother(Digest::of(b"another").to_string()),
            ),
            (
                signer.sign(&payload(&manifest, "something else")),
                SignatureError::Malformed,
            ),
            (signer.sign("{}"), SignatureError::Malformed),
        ] {
            assert_eq!(verified(vec![signed]), error(refused));
        }
        assert_eq!(verified(Vec::new()), error(SignatureError::OtherKey));
    }

    #[test]
    fn other_keys_than_p256_are_rejected() {
        let rsa = "-----BEGIN PUBLIC KEY-----\nMFwwDQYJKoZIhvcNAQEBBQADSwAwSAJBAKj34GkxFhD90vcNLYLInFEX6Ppy1tPf\n9Cnzj4p4WGeKLs1Pt8QuKUpRKfFLfRYC9AIKjbJTWit+CqvjWYzvQwECAwEAAQ==\n-----END PUBLIC KEY-----\n";
        for pem in ["", "nonsense", rsa] {
            let refused = CosignKey::read(pem).err();
            assert!(refused.is_some_and(|rule| rule.contains("P-256")), "{pem}");
        }
    }
}
