//! The public keys of certificates that were set: of which type they are, and what they signed.

use der::asn1::ObjectIdentifier;
use keywright_plugin_support::KeyLength;
use rsa::{
    RsaPublicKey, pkcs1::DecodeRsaPublicKey, pkcs1v15, signature::Verifier, traits::PublicKeyParts,
};
use sha1::Sha1;
use sha2::{Sha256, Sha384, Sha512};
use x509_cert::spki::SubjectPublicKeyInfoOwned;

use crate::key_type::KeyType;

/// A public key of a type that can be made.
pub enum PublicKey {
    /// RSA.
    Rsa(RsaPublicKey),
    /// ECDSA on P-256.
    EcdsaP256(p256::ecdsa::VerifyingKey),
    /// ECDSA on P-384.
    EcdsaP384(p384::ecdsa::VerifyingKey),
    /// Ed25519.
    Ed25519(ed25519_dalek::VerifyingKey),
}

impl PublicKey {
    /// Reads a key.
    ///
    /// # Errors
    ///
    /// Why none like it can be made, to stand behind the name of the member.
    pub fn of(info: &SubjectPublicKeyInfoOwned) -> Result<Self, String> {
        let bits = info.subject_public_key.as_bytes().unwrap_or(&[]);
        let curve = || {
            let parameters = info.algorithm.parameters.as_ref()?;
            parameters.decode_as::<ObjectIdentifier>().ok()
        };
        let key = match info.algorithm.oid {
            RSA_ENCRYPTION => RsaPublicKey::from_pkcs1_der(bits).ok().map(Self::Rsa),
            ED25519 => <&[u8; 32]>::try_from(bits)
                .ok()
                .and_then(|bits| ed25519_dalek::VerifyingKey::from_bytes(bits).ok())
                .map(Self::Ed25519),
            EC_PUBLIC_KEY => match curve() {
                Some(P256) => p256::ecdsa::VerifyingKey::from_sec1_bytes(bits)
                    .ok()
                    .map(Self::EcdsaP256),
                Some(P384) => p384::ecdsa::VerifyingKey::from_sec1_bytes(bits)
                    .ok()
                    .map(Self::EcdsaP384),
                Some(P521) => return Err(not_made("ecdsa-p521")),
                Some(other) => return Err(not_made(&format!("ecdsa on the curve {other}"))),
                None => return Err(not_made("ecdsa on a curve without a name")),
            },
            other => {
                let name = OTHER_ALGORITHMS
                    .iter()
                    .find_map(|(algorithm, name)| (*algorithm == other).then_some(*name));
                return Err(not_made(&name.map_or(other.to_string(), str::to_owned)));
            }
        };
        key.ok_or_else(|| "has a public key that can't be read".to_owned())
    }

    /// The type of key to make in its place, and whether that is as long: of RSA keys there is not every length, so that
    /// the next greater one is taken.
    ///
    /// # Errors
    ///
    /// Why there is none, to stand behind the name of the member.
    pub fn key_type(&self) -> Result<(KeyType, bool), String> {
        Ok(match self {
            Self::Rsa(key) => {
                let bits = key.n().bits();
                let length = KeyLength::covering(bits).ok_or_else(|| {
                    format!(
                        "has an RSA key of {bits} bits, and none longer than 4096 bits can be made"
                    )
                })?;
                (KeyType::Rsa(length), u32::from(length) == bits)
            }
            Self::EcdsaP256(_) => (KeyType::EcdsaP256, true),
            Self::EcdsaP384(_) => (KeyType::EcdsaP384, true),
            Self::Ed25519(_) => (KeyType::Ed25519, true),
        })
    }

    /// Whether the key made this signature over a message; none where the algorithm is not one that is known here.
    #[must_use]
    pub fn has_signed(
        &self,
        algorithm: ObjectIdentifier,
        message: &[u8],
        signature: &[u8],
    ) -> Option<bool> {
        match (self, algorithm) {
            (Self::Rsa(key), _) => has_rsa_signed(key, algorithm, message, signature),
            (Self::EcdsaP256(key), ECDSA_WITH_SHA256) => Some(
                p256::ecdsa::DerSignature::from_bytes(signature)
                    .is_ok_and(|signature| key.verify(message, &signature).is_ok()),
            ),
            (Self::EcdsaP384(key), ECDSA_WITH_SHA384) => Some(
                p384::ecdsa::DerSignature::from_bytes(signature)
                    .is_ok_and(|signature| key.verify(message, &signature).is_ok()),
            ),
            (Self::Ed25519(key), ED25519) => Some(
                ed25519_dalek::Signature::from_slice(signature)
                    .is_ok_and(|signature| key.verify(message, &signature).is_ok()),
            ),
            _ => None,
        }
    }
}

fn has_rsa_signed(
    key: &RsaPublicKey,
    algorithm: ObjectIdentifier,
    message: &[u8],
    signature: &[u8],
) -> Option<bool> {
    let Ok(signature) = pkcs1v15::Signature::try_from(signature) else {
        return Some(false);
    };
    let key = key.clone();
    let verified = match algorithm {
        SHA1_WITH_RSA => pkcs1v15::VerifyingKey::<Sha1>::new(key).verify(message, &signature),
        SHA256_WITH_RSA => pkcs1v15::VerifyingKey::<Sha256>::new(key).verify(message, &signature),
        SHA384_WITH_RSA => pkcs1v15::VerifyingKey::<Sha384>::new(key).verify(message, &signature),
        SHA512_WITH_RSA => pkcs1v15::VerifyingKey::<Sha512>::new(key).verify(message, &signature),
        _ => return None,
    };
    Some(verified.is_ok())
}

fn not_made(key_type: &str) -> String {
    format!("has a key of type {key_type}, and keys of that type can't be made")
}

const RSA_ENCRYPTION: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");
const SHA1_WITH_RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.5");
const SHA256_WITH_RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.11");
const SHA384_WITH_RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.12");
const SHA512_WITH_RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.13");

const EC_PUBLIC_KEY: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
const P256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.3.1.7");
const P384: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.132.0.34");
const P521: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.132.0.35");
const ECDSA_WITH_SHA256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.4.3.2");
const ECDSA_WITH_SHA384: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.4.3.3");

/// The key and the signature alike (RFC 8410).
const ED25519: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.101.112");

/// Algorithms of keys that can't be made, by the names that people know them by.
const OTHER_ALGORITHMS: [(ObjectIdentifier, &str); 3] = [
    (
        ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.10"),
        "rsassa-pss",
    ),
    (ObjectIdentifier::new_unwrap("1.3.101.113"), "ed448"),
    (ObjectIdentifier::new_unwrap("1.2.840.10040.4.1"), "dsa"),
];
