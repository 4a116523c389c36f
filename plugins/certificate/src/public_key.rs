//! The public keys of set certificates: their type, and signatures by them.

use der::{Decode, asn1::ObjectIdentifier};
use keywright_plugin_support::KeyLength;
use rsa::{
    BoxedUint, RsaPublicKey,
    pkcs1::{RsaPssParamsOwned, RsaPublicKeyRef},
    pkcs1v15, pss,
    signature::{Verifier, hazmat::PrehashVerifier},
    traits::PublicKeyParts,
};
use sha1::Sha1;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};
use x509_cert::spki::{AlgorithmIdentifierOwned, SubjectPublicKeyInfoOwned};

use crate::key_type::KeyType;

/// A public key of a type that can be generated.
pub enum PublicKey {
    /// RSA, and the length of a regenerated key.
    Rsa(RsaPublicKey, KeyLength),
    /// ECDSA on P-256.
    EcdsaP256(p256::ecdsa::VerifyingKey),
    /// ECDSA on P-384.
    EcdsaP384(p384::ecdsa::VerifyingKey),
    /// Ed25519.
    Ed25519(ed25519_dalek::VerifyingKey),
}

impl PublicKey {
    /// Parses a key.
    ///
    /// # Errors
    ///
    /// The rule that the certificate breaks, if such a key can't be generated.
    pub fn of(info: &SubjectPublicKeyInfoOwned) -> Result<Self, String> {
        let bits = info.subject_public_key.as_bytes().unwrap_or(&[]);
        let curve = || {
            let parameters = info.algorithm.parameters.as_ref()?;
            parameters.decode_as::<ObjectIdentifier>().ok()
        };
        let key = match info.algorithm.oid {
            RSA_ENCRYPTION => return Self::of_rsa(bits),
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
                Some(P521) => return Err(unsupported_key("ecdsa-p521")),
                Some(other) => return Err(unsupported_key(&format!("ecdsa on the curve {other}"))),
                None => return Err(unsupported_key("ecdsa on a curve without a name")),
            },
            other => {
                let name = OTHER_ALGORITHMS
                    .iter()
                    .find_map(|(algorithm, name)| (*algorithm == other).then_some(*name));
                return Err(unsupported_key(
                    &name.map_or(other.to_string(), str::to_owned),
                ));
            }
        };
        key.ok_or_else(|| UNREADABLE.to_owned())
    }

    /// Checks the length first, because the library has limits of its own.
    fn of_rsa(bits: &[u8]) -> Result<Self, String> {
        let unreadable = || UNREADABLE.to_owned();
        let parts = RsaPublicKeyRef::from_der(bits).map_err(|_| unreadable())?;
        let modulus = BoxedUint::from_be_slice_vartime(parts.modulus.as_bytes());
        let exponent = BoxedUint::from_be_slice_vartime(parts.public_exponent.as_bytes());
        let bits = modulus.bits_vartime();
        let length = KeyLength::covering(bits).ok_or_else(|| {
            format!(
                "has an RSA key of {bits} bits, but only keys of up to 4096 bits can be generated"
            )
        })?;
        RsaPublicKey::new_with_size_limits(modulus, exponent, 1..=length.bits())
            .map(|key| Self::Rsa(key, length))
            .map_err(|_| unreadable())
    }

    /// Returns the type of a regenerated key, and whether it has the same length. If the length of an RSA key can't be requested,
    /// the regenerated key has the next larger length.
    pub fn key_type(&self) -> (KeyType, bool) {
        match self {
            Self::Rsa(key, length) => (
                KeyType::Rsa(*length),
                u32::from(*length) == key.n().bits_vartime(),
            ),
            Self::EcdsaP256(_) => (KeyType::EcdsaP256, true),
            Self::EcdsaP384(_) => (KeyType::EcdsaP384, true),
            Self::Ed25519(_) => (KeyType::Ed25519, true),
        }
    }

    /// Returns whether the signature of the message is by this key. False if the algorithm is unknown, or is for another type of
    /// key.
    pub fn has_signed(
        &self,
        algorithm: &AlgorithmIdentifierOwned,
        message: &[u8],
        signature: &[u8],
    ) -> bool {
        match self {
            Self::Rsa(key, _) if algorithm.oid == RSASSA_PSS => {
                has_signed_with_pss(key, algorithm, message, signature)
            }
            Self::Rsa(key, _) => has_signed_with_pkcs1(key, algorithm.oid, message, signature),
            Self::EcdsaP256(key) => ecdsa_digest(algorithm.oid, message)
                .zip(p256::ecdsa::DerSignature::from_bytes(signature).ok())
                .is_some_and(|(digest, signature)| key.verify_prehash(&digest, &signature).is_ok()),
            Self::EcdsaP384(key) => ecdsa_digest(algorithm.oid, message)
                .zip(p384::ecdsa::DerSignature::from_bytes(signature).ok())
                .is_some_and(|(digest, signature)| key.verify_prehash(&digest, &signature).is_ok()),
            Self::Ed25519(key) => {
                algorithm.oid == ED25519
                    && ed25519_dalek::Signature::from_slice(signature)
                        .is_ok_and(|signature| key.verify(message, &signature).is_ok())
            }
        }
    }
}

/// Verifies a signature with RSASSA-PKCS1-v1_5 (RFC 8017, section 8.2).
fn has_signed_with_pkcs1(
    key: &RsaPublicKey,
    algorithm: ObjectIdentifier,
    message: &[u8],
    signature: &[u8],
) -> bool {
    let Ok(signature) = pkcs1v15::Signature::try_from(signature) else {
        return false;
    };
    let key = key.clone();
    match algorithm {
        SHA1_WITH_RSA | SHA1_WITH_RSA_OF_OIW => {
            pkcs1v15::VerifyingKey::<Sha1>::new(key).verify(message, &signature)
        }
        SHA224_WITH_RSA => pkcs1v15::VerifyingKey::<Sha224>::new(key).verify(message, &signature),
        SHA256_WITH_RSA => pkcs1v15::VerifyingKey::<Sha256>::new(key).verify(message, &signature),
        SHA384_WITH_RSA => pkcs1v15::VerifyingKey::<Sha384>::new(key).verify(message, &signature),
        SHA512_WITH_RSA => pkcs1v15::VerifyingKey::<Sha512>::new(key).verify(message, &signature),
        _ => return false,
    }
    .is_ok()
}

/// Verifies a signature with RSASSA-PSS (RFC 8017, section 8.1) that uses the same hash for the message and the mask.
fn has_signed_with_pss(
    key: &RsaPublicKey,
    algorithm: &AlgorithmIdentifierOwned,
    message: &[u8],
    signature: &[u8],
) -> bool {
    let parameters = algorithm
        .parameters
        .as_ref()
        .and_then(|parameters| parameters.decode_as::<RsaPssParamsOwned>().ok());
    let Some((parameters, signature)) = parameters.zip(pss::Signature::try_from(signature).ok())
    else {
        return false;
    };
    let (key, salt_bytes) = (key.clone(), usize::from(parameters.salt_len));
    match parameters.hash.oid {
        SHA1 => pss::VerifyingKey::<Sha1>::new_with_salt_len(key, salt_bytes)
            .verify(message, &signature),
        SHA224 => pss::VerifyingKey::<Sha224>::new_with_salt_len(key, salt_bytes)
            .verify(message, &signature),
        SHA256 => pss::VerifyingKey::<Sha256>::new_with_salt_len(key, salt_bytes)
            .verify(message, &signature),
        SHA384 => pss::VerifyingKey::<Sha384>::new_with_salt_len(key, salt_bytes)
            .verify(message, &signature),
        SHA512 => pss::VerifyingKey::<Sha512>::new_with_salt_len(key, salt_bytes)
            .verify(message, &signature),
        _ => return false,
    }
    .is_ok()
}

/// Computes the digest for an ECDSA signature algorithm (RFC 5758), independently of the curve.
fn ecdsa_digest(algorithm: ObjectIdentifier, message: &[u8]) -> Option<Vec<u8>> {
    Some(match algorithm {
        ECDSA_WITH_SHA1 => Sha1::digest(message).to_vec(),
        ECDSA_WITH_SHA224 => Sha224::digest(message).to_vec(),
        ECDSA_WITH_SHA256 => Sha256::digest(message).to_vec(),
        ECDSA_WITH_SHA384 => Sha384::digest(message).to_vec(),
        ECDSA_WITH_SHA512 => Sha512::digest(message).to_vec(),
        _ => return None,
    })
}

fn unsupported_key(key_type: &str) -> String {
    format!("has a key of type {key_type}, which can't be generated")
}

const UNREADABLE: &str = "has a public key that can't be read";

const RSA_ENCRYPTION: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");
const SHA1_WITH_RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.5");
/// The same algorithm with an older identifier.
const SHA1_WITH_RSA_OF_OIW: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.14.3.2.29");
const SHA224_WITH_RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.14");
const SHA256_WITH_RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.11");
const SHA384_WITH_RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.12");
const SHA512_WITH_RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.13");

/// Identifies both keys and signatures (RFC 4055).
const RSASSA_PSS: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.10");
const SHA1: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.14.3.2.26");
const SHA224: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.2.4");
const SHA256: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.2.1");
const SHA384: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.2.2");
const SHA512: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.2.3");

const EC_PUBLIC_KEY: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
const P256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.3.1.7");
const P384: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.132.0.34");
const P521: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.132.0.35");
const ECDSA_WITH_SHA1: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.4.1");
const ECDSA_WITH_SHA224: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.4.3.1");
const ECDSA_WITH_SHA256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.4.3.2");
const ECDSA_WITH_SHA384: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.4.3.3");
const ECDSA_WITH_SHA512: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.4.3.4");

/// Identifies both keys and signatures (RFC 8410).
const ED25519: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.101.112");

/// The common names of key algorithms that can't be generated.
const OTHER_ALGORITHMS: [(ObjectIdentifier, &str); 3] = [
    (RSASSA_PSS, "rsassa-pss"),
    (ObjectIdentifier::new_unwrap("1.3.101.113"), "ed448"),
    (ObjectIdentifier::new_unwrap("1.2.840.10040.4.1"), "dsa"),
];
