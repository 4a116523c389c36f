//! Generates and encodes private keys, and signs with them.

use der::{pem::LineEnding, zeroize::Zeroizing};
use ed25519_dalek::pkcs8::KeypairBytes;
use keywright_plugin_support::Failure;
use p256::{
    elliptic_curve::{Generate, sec1::ToSec1Point},
    pkcs8::{EncodePrivateKey, SecretDocument},
};
use rand_core::CryptoRng;
use rsa::{
    RsaPrivateKey,
    pkcs1::{EncodeRsaPrivateKey, EncodeRsaPublicKey},
    pkcs1v15,
    signature::{RandomizedSigner, SignatureEncoding, Signer},
};
use sha2::Sha256;

use crate::key_type::KeyType;

/// The private key of a certificate. It is zeroized on drop.
pub enum PrivateKey {
    /// RSA.
    Rsa(Box<RsaPrivateKey>),
    /// ECDSA on P-256.
    EcdsaP256(p256::SecretKey),
    /// ECDSA on P-384.
    EcdsaP384(p384::SecretKey),
    /// Ed25519.
    Ed25519(ed25519_dalek::SigningKey),
}

impl PrivateKey {
    /// Generates a key of this type.
    ///
    /// # Errors
    ///
    /// [`Failure::Other`] if no primes are found for an RSA key.
    pub fn generate(key_type: KeyType, random: &mut impl CryptoRng) -> Result<Self, Failure> {
        Ok(match key_type {
            KeyType::Rsa(key_length) => RsaPrivateKey::new(random, key_length.bits())
                .map(|key| Self::Rsa(Box::new(key)))
                .map_err(|error| Failure::Other(format!("could not generate a key: {error}")))?,
            KeyType::EcdsaP256 => Self::EcdsaP256(p256::SecretKey::generate_from_rng(random)),
            KeyType::EcdsaP384 => Self::EcdsaP384(p384::SecretKey::generate_from_rng(random)),
            KeyType::Ed25519 => Self::Ed25519(ed25519_dalek::SigningKey::generate(random)),
        })
    }

    /// Encodes the key as PEM: PKCS#1 for RSA, as clients of this API expect, and PKCS#8 for other types (RFC 5208, RFC 8410).
    pub fn to_pem(&self) -> Result<Zeroizing<String>, Failure> {
        match self {
            Self::Rsa(key) => key.to_pkcs1_pem(LineEnding::LF).map_err(not_encoded),
            Self::EcdsaP256(key) => pkcs8_pem(key.to_pkcs8_der()),
            Self::EcdsaP384(key) => pkcs8_pem(key.to_pkcs8_der()),
            // A public key would make this version 2, but many programs only support version 1.
            Self::Ed25519(key) => pkcs8_pem(
                KeypairBytes {
                    secret_key: key.to_bytes(),
                    public_key: None,
                }
                .to_pkcs8_der(),
            ),
        }
    }

    /// Encodes the public key as the `subjectPublicKey` of a certificate.
    pub fn public_key(&self) -> Result<Vec<u8>, Failure> {
        Ok(match self {
            Self::Rsa(key) => key
                .to_public_key()
                .to_pkcs1_der()
                .map_err(not_encoded)?
                .as_bytes()
                .to_vec(),
            Self::EcdsaP256(key) => key.public_key().to_sec1_point(false).as_bytes().to_vec(),
            Self::EcdsaP384(key) => key.public_key().to_sec1_point(false).as_bytes().to_vec(),
            Self::Ed25519(key) => key.verifying_key().as_bytes().to_vec(),
        })
    }

    /// Signs with the algorithm of [`KeyType::algorithm`]. Returns the signature in the encoding of certificates.
    pub fn sign(&self, message: &[u8], random: &mut impl CryptoRng) -> Result<Vec<u8>, Failure> {
        match self {
            Self::Rsa(key) => pkcs1v15::SigningKey::<Sha256>::new(RsaPrivateKey::clone(key))
                .try_sign_with_rng(random, message)
                .map(|signature| signature.to_vec()),
            Self::EcdsaP256(key) => p256::ecdsa::SigningKey::from(key)
                .try_sign(message)
                .map(|signature: p256::ecdsa::DerSignature| signature.as_bytes().to_vec()),
            Self::EcdsaP384(key) => p384::ecdsa::SigningKey::from(key)
                .try_sign(message)
                .map(|signature: p384::ecdsa::DerSignature| signature.as_bytes().to_vec()),
            Self::Ed25519(key) => key
                .try_sign(message)
                .map(|signature| signature.to_bytes().to_vec()),
        }
        .map_err(|error| Failure::Other(format!("could not sign: {error}")))
    }
}

fn pkcs8_pem(document: p256::pkcs8::Result<SecretDocument>) -> Result<Zeroizing<String>, Failure> {
    document
        .map_err(not_encoded)?
        .to_pem(PKCS8_LABEL, LineEnding::LF)
        .map_err(not_encoded)
}

fn not_encoded(_error: impl std::error::Error) -> Failure {
    Failure::Other("could not encode the key".to_owned())
}

const PKCS8_LABEL: &str = "PRIVATE KEY";
