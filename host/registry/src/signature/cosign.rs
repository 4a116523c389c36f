//! cosign signatures: ECDSA with P-256 and SHA-256 over a payload with the digest of the manifest (sigstore/cosign,
//! `specs/SIGNATURE_SPEC.md`, and the format "simple signing" of containers/image).

use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1, ParsedPublicKey};
use base64::{Engine, prelude::BASE64_STANDARD};
use rustls::pki_types::{SubjectPublicKeyInfoDer, pem::PemObject};
use serde::{Deserialize, Serialize};

use super::{KeyMalformed, SignatureRefused, minisign::missing, tag};
use crate::{
    Digest, Fault, PinnedReference, Registry,
    manifest::{MEDIA_TYPE, Manifest},
    pull::{MANIFEST_BYTES_MAX, blob},
};

/// A cosign public key.
#[derive(Clone)]
pub struct CosignKey(ParsedPublicKey);

/// A signature with the payload that it signs.
#[derive(Debug, Deserialize, Serialize)]
struct Signed {
    /// In base64.
    payload: String,
    /// In base64, of DER.
    signature: String,
}

/// The signed payload.
#[derive(Deserialize)]
struct Payload {
    critical: Critical,
}

#[derive(Deserialize)]
struct Critical {
    image: Image,
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Deserialize)]
struct Image {
    #[serde(rename = "docker-manifest-digest")]
    manifest_digest: String,
}

impl CosignKey {
    /// Parses a public key in the format of `cosign.pub`.
    ///
    /// # Errors
    /// If it is malformed, or not a P-256 key.
    pub fn read(pem: &str) -> Result<Self, KeyMalformed> {
        let der = SubjectPublicKeyInfoDer::from_pem_slice(pem.as_bytes())
            .map_err(|_| KeyMalformed::Cosign)?;
        let key = ParsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, der.as_ref())
            .map_err(|_| KeyMalformed::Cosign)?;
        Ok(Self(key))
    }

    /// Verifies that at least one of the signatures is by this key and for this manifest.
    pub(super) fn verify(
        &self,
        manifest: &Digest,
        signatures: &[u8],
    ) -> Result<(), SignatureRefused> {
        let signatures: Vec<Signed> =
            keywright_json::read_bytes(signatures).map_err(|_| SignatureRefused::Malformed)?;
        let mut refusal = SignatureRefused::OtherKey;
        for payload in signatures.iter().filter_map(|signed| self.payload(signed)) {
            let payload: Payload =
                keywright_json::read_bytes(&payload).map_err(|_| SignatureRefused::Malformed)?;
            let named = payload.critical.image.manifest_digest;
            if payload.critical.kind != PAYLOAD_TYPE {
                refusal = SignatureRefused::Malformed;
            } else if named == manifest.to_string() {
                return Ok(());
            } else {
                refusal = SignatureRefused::OfAnother(crate::error_message::sanitized(&named));
            }
        }
        Err(refusal)
    }

    /// Returns the payload if the signature is by this key.
    fn payload(&self, signed: &Signed) -> Option<Vec<u8>> {
        let payload = BASE64_STANDARD.decode(&signed.payload).ok()?;
        let signature = BASE64_STANDARD.decode(&signed.signature).ok()?;
        self.0.verify_sig(&payload, &signature).ok()?;
        Some(payload)
    }
}

/// Pulls all signatures of a manifest.
pub(super) async fn fetch(
    registry: &Registry,
    reference: &PinnedReference,
) -> Result<Vec<u8>, Fault> {
    let repository = &reference.repository.name;
    let tag = tag(reference.digest(), TAG_END);
    let url = registry.url(repository, &format!("manifests/{tag}"));
    let resource = "the manifest of the signatures";
    let manifest = registry.get(url, resource, Some(MEDIA_TYPE), MANIFEST_BYTES_MAX);
    let manifest = manifest.await.map_err(|fault| missing(fault, &tag))?;
    let manifest = Manifest::read(&manifest)?;
    let mut signatures = Vec::new();
    for layer in &manifest.layers {
        let Some(signature) = layer.annotations.get(ANNOTATION) else {
            continue;
        };
        if signatures.len() == SIGNATURES_MAX {
            break;
        }
        let resource = "the signed payload";
        let payload = blob(registry, repository, layer, resource, PAYLOAD_BYTES_MAX).await?;
        signatures.push(Signed {
            payload: BASE64_STANDARD.encode(payload),
            signature: signature.clone(),
        });
    }
    if signatures.is_empty() {
        return Err(SignatureRefused::Malformed.into());
    }
    serde_json::to_vec(&signatures).map_err(|_| SignatureRefused::Malformed.into())
}

/// The suffix of the tag for the signatures.
const TAG_END: &str = ".sig";
/// The annotation with the signature of a layer.
const ANNOTATION: &str = "dev.cosignproject.cosign/signature";
/// The `type` of a payload.
const PAYLOAD_TYPE: &str = "cosign container image signature";
/// The maximum number of signatures to check for one manifest.
const SIGNATURES_MAX: usize = 16;
/// The largest payload, in bytes.
const PAYLOAD_BYTES_MAX: u64 = 16 * 1024;
/// An upper bound for a cached file: all payloads in base64, and the annotations of one manifest.
pub(super) const CACHED_BYTES_MAX: u64 = 16 * PAYLOAD_BYTES_MAX * 2 + MANIFEST_BYTES_MAX;

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

        fn sign(&self, payload: &str) -> Signed {
            let signature = self
                .0
                .sign(&SystemRandom::new(), payload.as_bytes())
                .unwrap();
            Signed {
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
        let good = payload(&manifest, PAYLOAD_TYPE);
        let of_another = payload(&Digest::of(b"another"), PAYLOAD_TYPE);
        let mut changed = signer.sign(&of_another);
        changed.payload = BASE64_STANDARD.encode(&good);
        let verified = |signatures: Vec<Signed>| {
            let signatures = serde_json::to_vec(&signatures).unwrap();
            let verified = signer.key().verify(&manifest, &signatures);
            verified.map_err(|refused| refused.to_string())
        };
        let error = |refused: SignatureRefused| Err(refused.to_string());
        assert_eq!(verified(vec![signer.sign(&good)]), Ok(()));
        let several = vec![
            other.sign(&good),
            signer.sign(&of_another),
            signer.sign(&good),
        ];
        assert_eq!(verified(several), Ok(()));
        for (signed, refused) in [
            (other.sign(&good), SignatureRefused::OtherKey),
            (changed, SignatureRefused::OtherKey),
            (
                signer.sign(&of_another),
                SignatureRefused::OfAnother(Digest::of(b"another").to_string()),
            ),
            (
                signer.sign(&payload(&manifest, "something else")),
                SignatureRefused::Malformed,
            ),
            (signer.sign("{}"), SignatureRefused::Malformed),
        ] {
            assert_eq!(verified(vec![signed]), error(refused));
        }
        assert_eq!(verified(Vec::new()), error(SignatureRefused::OtherKey));
    }

    #[test]
    fn other_keys_than_p256_are_rejected() {
        let rsa = "-----BEGIN PUBLIC KEY-----\nMFwwDQYJKoZIhvcNAQEBBQADSwAwSAJBAKj34GkxFhD90vcNLYLInFEX6Ppy1tPf\n9Cnzj4p4WGeKLs1Pt8QuKUpRKfFLfRYC9AIKjbJTWit+CqvjWYzvQwECAwEAAQ==\n-----END PUBLIC KEY-----\n";
        for pem in ["", "nonsense", rsa] {
            assert_eq!(
                CosignKey::read(pem).err(),
                Some(KeyMalformed::Cosign),
                "{pem}"
            );
        }
    }
}
