//! Signatures by a key of cosign's: ECDSA with P-256 and SHA-256, of a text that names the manifest (sigstore/cosign,
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

/// A public key of cosign's.
#[derive(Clone)]
pub struct CosignKey(ParsedPublicKey);

/// A signature, and what it is of: a text that was signed, not what is meant by it.
#[derive(Debug, Deserialize, Serialize)]
struct Signed {
    /// In base64.
    payload: String,
    /// In base64, of DER.
    signature: String,
}

/// What is signed.
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
    /// Reads a key, as `cosign.pub` has it.
    ///
    /// # Errors
    /// When it is none, or one of another curve.
    pub fn read(pem: &str) -> Result<Self, KeyMalformed> {
        let der = SubjectPublicKeyInfoDer::from_pem_slice(pem.as_bytes())
            .map_err(|_| KeyMalformed::Cosign)?;
        let key = ParsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, der.as_ref())
            .map_err(|_| KeyMalformed::Cosign)?;
        Ok(Self(key))
    }

    /// One of the signatures must be by this key, and of this manifest.
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
                refusal = SignatureRefused::OfAnother(crate::told::harmless(&named));
            }
        }
        Err(refusal)
    }

    /// What was signed, if it was by this key.
    fn payload(&self, signed: &Signed) -> Option<Vec<u8>> {
        let payload = BASE64_STANDARD.decode(&signed.payload).ok()?;
        let signature = BASE64_STANDARD.decode(&signed.signature).ok()?;
        self.0.verify_sig(&payload, &signature).ok()?;
        Some(payload)
    }
}

/// All signatures of a manifest, from the registry.
pub(super) async fn fetch(
    registry: &Registry,
    reference: &PinnedReference,
) -> Result<Vec<u8>, Fault> {
    let repository = &reference.place.repository;
    let tag = tag(reference.digest(), TAG_END);
    let url = registry.url(repository, &format!("manifests/{tag}"));
    let what = "the manifest of the signatures";
    let manifest = registry.get(url, what, Some(MEDIA_TYPE), MANIFEST_BYTES_MAX);
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
        let what = "what was signed";
        let payload = blob(registry, repository, layer, what, PAYLOAD_BYTES_MAX).await?;
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

/// How the tag of the signatures ends.
const TAG_END: &str = ".sig";
/// The annotation of a layer that holds the signature of the layer.
const ANNOTATION: &str = "dev.cosignproject.cosign/signature";
/// The type of a payload.
const PAYLOAD_TYPE: &str = "cosign container image signature";
/// The most signatures of one manifest that are looked at.
const SIGNATURES_MAX: usize = 16;
/// The largest text that was signed, in bytes.
const PAYLOAD_BYTES_MAX: u64 = 16 * 1024;
/// What is kept is not larger than all of that in base64, with the annotations, which stand in one manifest.
pub(super) const KEPT_BYTES_MAX: u64 = 16 * PAYLOAD_BYTES_MAX * 2 + MANIFEST_BYTES_MAX;

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
    fn one_signature_must_be_by_the_key_and_of_the_manifest() {
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
        let told = |refused: SignatureRefused| Err(refused.to_string());
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
            assert_eq!(verified(vec![signed]), told(refused));
        }
        assert_eq!(verified(Vec::new()), told(SignatureRefused::OtherKey));
    }

    #[test]
    fn a_key_of_another_kind_is_refused() {
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
