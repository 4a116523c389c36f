//! Private keys: reading them, and signing with them.

use aws_lc_rs::{
    error::KeyRejected,
    rand::SystemRandom,
    rsa,
    signature::{
        ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_ASN1_SIGNING,
        ECDSA_P521_SHA512_ASN1_SIGNING, EcdsaKeyPair, EcdsaSigningAlgorithm, Ed25519KeyPair,
        KeyPair as _, RSA_PKCS1_SHA256,
    },
};
use keywright_core::Secret;
use x509_parser::x509::SubjectPublicKeyInfo;

use super::{
    der::{elements, split_element},
    pem::PemBlock,
};

/// A private key. The library that holds it zeroes it when it is dropped.
pub(super) enum SigningKey {
    Ecdsa(EcdsaKeyPair, &'static EcdsaAlgorithm),
    Ed25519(Ed25519KeyPair),
    Rsa(rsa::KeyPair),
}

impl SigningKey {
    /// Reads the first private key of a PEM text: PKCS#1, SEC1 or PKCS#8, not encrypted.
    ///
    /// # Errors
    /// The rule that the text breaks, to stand behind the name of the member.
    pub(super) fn parse(pem: &Secret) -> Result<Self, &'static str> {
        let block = PemBlock::all(pem.expose())
            .find(|block| block.label != EC_PARAMETERS)
            .ok_or(NOT_A_PRIVATE_KEY)?;
        if block.label == ENCRYPTED_PKCS8 || block.is_encrypted() {
            return Err(ENCRYPTED);
        }
        let parse = match block.label {
            PKCS1 => Self::parse_pkcs1,
            PKCS8 => Self::parse_pkcs8,
            SEC1 => Self::parse_sec1,
            _ => return Err(NOT_A_PRIVATE_KEY),
        };
        let der = block.decode().ok_or(NOT_A_PRIVATE_KEY)?;
        parse(&der).ok_or(NOT_A_KNOWN_KEY)
    }

    /// The bits of the public key, as a certificate's subject public key has them.
    pub(super) fn public_key(&self) -> &[u8] {
        match self {
            Self::Ecdsa(key, _) => key.public_key().as_ref(),
            Self::Ed25519(key) => key.public_key().as_ref(),
            Self::Rsa(key) => key.public_key().as_ref(),
        }
    }

    /// Returns whether it is the private half of this public key, which must be of the very algorithm that it signs with.
    pub(super) fn is_of(&self, public_key: &SubjectPublicKeyInfo<'_>) -> bool {
        let algorithm = split_element(public_key.raw)
            .and_then(|(_, content, _)| elements(content).next())
            .unwrap_or_default();
        let is_of_algorithm = match self {
            Self::Ecdsa(_, own) => algorithm == own.of_key,
            Self::Ed25519(_) => algorithm == ED25519_IDENTIFIER,
            Self::Rsa(_) => RSA_IDENTIFIERS.contains(&algorithm),
        };
        is_of_algorithm && public_key.subject_public_key.data.as_ref() == self.public_key()
    }

    /// The number in the public key that tells it from all others: the modulus without leading zeros, the X coordinate
    /// of the point, or all of an Ed25519 key.
    pub(super) fn public_number(&self) -> &[u8] {
        match self {
            // Uncompressed: a byte of form, X, and Y, of the same length (SEC 1, section 2.3.3).
            Self::Ecdsa(key, _) => {
                let coordinates = key.public_key().as_ref().get(1..).unwrap_or_default();
                coordinates.get(..coordinates.len() / 2).unwrap_or_default()
            }
            Self::Ed25519(key) => key.public_key().as_ref(),
            Self::Rsa(key) => modulus(key.public_key().as_ref()).unwrap_or_default(),
        }
    }

    /// The algorithm that it signs with: a DER `AlgorithmIdentifier`.
    pub(super) fn signature_algorithm(&self) -> &'static [u8] {
        match self {
            Self::Ecdsa(_, algorithm) => algorithm.identifier,
            Self::Ed25519(_) => ED25519_IDENTIFIER,
            Self::Rsa(_) => SHA256_WITH_RSA_IDENTIFIER,
        }
    }

    /// The signature over a message; none when signing fails.
    pub(super) fn sign(&self, message: &[u8]) -> Option<Vec<u8>> {
        match self {
            Self::Ecdsa(key, _) => {
                let signature = key.sign(&SystemRandom::new(), message).ok()?;
                Some(signature.as_ref().to_vec())
            }
            Self::Ed25519(key) => Some(key.try_sign(message).ok()?.as_ref().to_vec()),
            Self::Rsa(key) => {
                let mut signature = vec![0; key.public_modulus_len()];
                key.sign(
                    &RSA_PKCS1_SHA256,
                    &SystemRandom::new(),
                    message,
                    &mut signature,
                )
                .ok()?;
                Some(signature)
            }
        }
    }

    fn parse_pkcs1(der: &[u8]) -> Option<Self> {
        rsa::KeyPair::from_der(der).ok().map(Self::Rsa)
    }

    fn parse_sec1(der: &[u8]) -> Option<Self> {
        parse_ecdsa(|algorithm| EcdsaKeyPair::from_private_key_der(algorithm, der))
    }

    fn parse_pkcs8(der: &[u8]) -> Option<Self> {
        let rsa = rsa::KeyPair::from_pkcs8(der).map(Self::Rsa).ok();
        let ecdsa = || parse_ecdsa(|algorithm| EcdsaKeyPair::from_pkcs8(algorithm, der));
        let ed25519 = || Ed25519KeyPair::from_pkcs8(der).map(Self::Ed25519).ok();
        rsa.or_else(ecdsa).or_else(ed25519)
    }
}

/// The modulus of an `RSAPublicKey` (RFC 8017, appendix A.1.1), without leading zeros.
fn modulus(public_key: &[u8]) -> Option<&[u8]> {
    let (_, members, _) = split_element(public_key)?;
    let (_, modulus, _) = split_element(members)?;
    let begin = modulus.iter().position(|octet| *octet != 0)?;
    modulus.get(begin..)
}

/// A curve with the hash that goes with it, and their DER names.
pub(super) struct EcdsaAlgorithm {
    signing: &'static EcdsaSigningAlgorithm,
    /// Of the two.
    identifier: &'static [u8],
    /// Of keys on the curve.
    of_key: &'static [u8],
}

/// The key on the first curve on which it is one.
fn parse_ecdsa(
    parse: impl Fn(&'static EcdsaSigningAlgorithm) -> Result<EcdsaKeyPair, KeyRejected>,
) -> Option<SigningKey> {
    ECDSA_ALGORITHMS.iter().find_map(|algorithm| {
        let key = parse(algorithm.signing).ok()?;
        Some(SigningKey::Ecdsa(key, algorithm))
    })
}

static ECDSA_ALGORITHMS: [EcdsaAlgorithm; 3] = [
    EcdsaAlgorithm {
        signing: &ECDSA_P256_SHA256_ASN1_SIGNING,
        identifier: &[
            0x30, 0x0a, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02,
        ],
        of_key: &[
            0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a,
            0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07,
        ],
    },
    EcdsaAlgorithm {
        signing: &ECDSA_P384_SHA384_ASN1_SIGNING,
        identifier: &[
            0x30, 0x0a, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x03,
        ],
        of_key: &[
            0x30, 0x10, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x05, 0x2b,
            0x81, 0x04, 0x00, 0x22,
        ],
    },
    EcdsaAlgorithm {
        signing: &ECDSA_P521_SHA512_ASN1_SIGNING,
        identifier: &[
            0x30, 0x0a, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x04,
        ],
        of_key: &[
            0x30, 0x10, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x05, 0x2b,
            0x81, 0x04, 0x00, 0x23,
        ],
    },
];

const ED25519_IDENTIFIER: &[u8] = &[0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70];

/// RSA keys, with the parameters that they should have, and without.
const RSA_IDENTIFIERS: [&[u8]; 2] = [
    &[
        0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00,
    ],
    &[
        0x30, 0x0b, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01,
    ],
];

const SHA256_WITH_RSA_IDENTIFIER: &[u8] = &[
    0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0b, 0x05, 0x00,
];

const PKCS1: &str = "RSA PRIVATE KEY";
const PKCS8: &str = "PRIVATE KEY";
const SEC1: &str = "EC PRIVATE KEY";
const ENCRYPTED_PKCS8: &str = "ENCRYPTED PRIVATE KEY";

/// A block that some tools write before a SEC1 key; the key repeats what it says.
const EC_PARAMETERS: &str = "EC PARAMETERS";

const ENCRYPTED: &str = "must not be encrypted";
const NOT_A_PRIVATE_KEY: &str =
    "is malformed: it must be a PEM-encoded private key in the form of PKCS#1, SEC1 or PKCS#8";
const NOT_A_KNOWN_KEY: &str = "is malformed: it must be an RSA key of 2048 to 8192 bits, an ECDSA key on P-256, P-384 or P-521, \
     or an Ed25519 key";
