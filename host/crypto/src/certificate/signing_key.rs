//! Parses private keys, and signs with them.

use aws_lc_rs::{
    error::KeyRejected,
    rand::SystemRandom,
    rsa::KeyPair as RsaKeyPair,
    signature::{
        ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_ASN1_SIGNING,
        ECDSA_P521_SHA512_ASN1_SIGNING, EcdsaKeyPair, EcdsaSigningAlgorithm, Ed25519KeyPair,
        KeyPair as _, RSA_PKCS1_SHA256,
    },
};
use getrandom::SysRng;
use keywright_core::{
    Secret,
    certificate::{RSA_BITS_MIN, RSA_BITS_RECOMMENDED},
};
use keywright_der::{elements, split_element};
use rsa::{
    RsaPrivateKey,
    pkcs1::{DecodeRsaPrivateKey as _, EncodeRsaPrivateKey as _, EncodeRsaPublicKey as _},
    pkcs1v15,
    pkcs8::DecodePrivateKey as _,
    signature::{RandomizedSigner as _, SignatureEncoding as _},
};
use sha2::Sha256;
use x509_parser::x509::SubjectPublicKeyInfo;

use super::{
    facts,
    pem::{self, PemBlock},
    shape::constructed,
};

/// A private key. It is zeroized on drop.
pub(super) enum SigningKey {
    Ecdsa(EcdsaKeyPair, &'static EcdsaAlgorithm),
    Ed25519(Ed25519KeyPair),
    Rsa(RsaKeyPair),
    ShortRsa(Box<ShortRsaKey>),
}

/// An RSA key of 1024 to 2047 bits, which the library for the other keys does not support.
pub(super) struct ShortRsaKey {
    key: pkcs1v15::SigningKey<Sha256>,
    /// DER.
    public_key: Vec<u8>,
}

impl SigningKey {
    /// Parses the first private key in a PEM text: PKCS#1, SEC1 or PKCS#8, not encrypted.
    ///
    /// # Errors
    /// The rule that the text breaks. Messages put the name of the field before it.
    pub(super) fn parse(pem: &Secret) -> Result<Self, &'static str> {
        let block = key_block(pem.expose()).ok_or(NOT_A_PRIVATE_KEY)?;
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

    /// Returns the public key, encoded as the `subjectPublicKey` of a certificate.
    pub(super) fn public_key(&self) -> &[u8] {
        match self {
            Self::Ecdsa(key, _) => key.public_key().as_ref(),
            Self::Ed25519(key) => key.public_key().as_ref(),
            Self::Rsa(key) => key.public_key().as_ref(),
            Self::ShortRsa(key) => &key.public_key,
        }
    }

    /// Returns whether this is the private key for a public key, which must have exactly the same algorithm.
    pub(super) fn is_of(&self, public_key: &SubjectPublicKeyInfo<'_>) -> bool {
        let algorithm = split_element(public_key.raw)
            .and_then(|(_, content, _)| elements(content).next())
            .unwrap_or_default();
        let is_of_algorithm = match self {
            Self::Ecdsa(_, own) => algorithm == own.of_key,
            Self::Ed25519(_) => algorithm == ED25519_IDENTIFIER,
            Self::Rsa(_) | Self::ShortRsa(_) => RSA_IDENTIFIERS.contains(&algorithm),
        };
        is_of_algorithm && public_key.subject_public_key.data.as_ref() == self.public_key()
    }

    /// Returns the number that identifies the public key: the modulus without leading zeros, the X coordinate of the point, or the
    /// whole Ed25519 key.
    pub(super) fn public_number(&self) -> &[u8] {
        match self {
            // An uncompressed point: a byte for its form, then X and Y of equal length (SEC 1, section 2.3.3).
            Self::Ecdsa(key, _) => {
                let coordinates = key.public_key().as_ref().get(1..).unwrap_or_default();
                coordinates.get(..coordinates.len() / 2).unwrap_or_default()
            }
            Self::Ed25519(key) => key.public_key().as_ref(),
            Self::Rsa(_) | Self::ShortRsa(_) => {
                facts::modulus(self.public_key()).unwrap_or_default()
            }
        }
    }

    /// Returns the signature algorithm as a DER `AlgorithmIdentifier`.
    pub(super) fn signature_algorithm(&self) -> &'static [u8] {
        match self {
            Self::Ecdsa(_, algorithm) => algorithm.identifier,
            Self::Ed25519(_) => ED25519_IDENTIFIER,
            Self::Rsa(_) | Self::ShortRsa(_) => SHA256_WITH_RSA_IDENTIFIER,
        }
    }

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
            // Random blinding prevents timing attacks.
            Self::ShortRsa(key) => {
                let signature = key.key.try_sign_with_rng(&mut SysRng, message).ok()?;
                Some(signature.to_vec())
            }
        }
    }

    fn parse_pkcs1(der: &[u8]) -> Option<Self> {
        let rsa = RsaKeyPair::from_der(der).ok().map(Self::Rsa);
        rsa.or_else(|| Self::parse_short_rsa(PKCS1, der))
    }

    /// Parses an RSA key of 1024 to 2047 bits. Checks the length first, because the library computes with a modulus of any length.
    ///
    /// The library ignores the exponents of the primes and the coefficient. Other programs sign with them, and a signature with a wrong
    /// one reveals the primes. So these numbers must equal the numbers that the library computes.
    fn parse_short_rsa(label: &str, der: &[u8]) -> Option<Self> {
        rsa_bits(label, der).filter(|bits| (RSA_BITS_MIN..RSA_BITS_RECOMMENDED).contains(bits))?;
        let (key, pkcs1) = match label {
            PKCS1 => (RsaPrivateKey::from_pkcs1_der(der).ok()?, der),
            _ => (
                RsaPrivateKey::from_pkcs8_der(der).ok()?,
                content(field(der, 2)?)?,
            ),
        };
        if key.to_pkcs1_der().ok()?.as_bytes() != pkcs1 {
            return None;
        }
        let public_key = key.to_public_key().to_pkcs1_der().ok()?.into_vec();
        Some(Self::ShortRsa(Box::new(ShortRsaKey {
            key: pkcs1v15::SigningKey::new(key),
            public_key,
        })))
    }

    /// Parses a SEC1 key, which must name its curve: other programs can't read it otherwise.
    fn parse_sec1(der: &[u8]) -> Option<Self> {
        field(der, 2).filter(|parameters| parameters.first() == Some(&constructed(0)))?;
        parse_ecdsa(|algorithm| EcdsaKeyPair::from_private_key_der(algorithm, der))
    }

    fn parse_pkcs8(der: &[u8]) -> Option<Self> {
        let rsa = RsaKeyPair::from_pkcs8(der).map(Self::Rsa).ok();
        let ecdsa = || parse_ecdsa(|algorithm| EcdsaKeyPair::from_pkcs8(algorithm, der));
        let ed25519 = || Ed25519KeyPair::from_pkcs8(der).map(Self::Ed25519).ok();
        let short_rsa = || Self::parse_short_rsa(PKCS8, der);
        rsa.or_else(ecdsa).or_else(ed25519).or_else(short_rsa)
    }
}

/// Returns the text to store for a private key: the original text if every program finds the key in it, otherwise only the key. The
/// text must have a key that [`SigningKey::parse`] accepts.
pub(super) fn stored_text(pem: &Secret) -> Secret {
    let mut parameters =
        PemBlock::all(pem.expose()).take_while(|block| block.label == EC_PARAMETERS);
    let key = key_block(pem.expose());
    if parameters.all(|block| block.is_strict()) && key.is_some_and(|key| key.is_strict()) {
        return pem.clone();
    }
    let rewritten = key_block(pem.expose())
        .and_then(|block| Some(Secret::new(pem::block(block.label, &block.decode()?)?)));
    rewritten.unwrap_or_else(|| pem.clone())
}

/// Returns the first block that may be a key.
fn key_block(pem: &str) -> Option<PemBlock<'_>> {
    PemBlock::all(pem).find(|block| block.label != EC_PARAMETERS)
}

/// Returns the length in bits of the public or private RSA key in a PEM text, or `None` for other texts.
pub(super) fn rsa_bits_of_text(pem: &str) -> Option<u32> {
    let block = key_block(pem)?;
    rsa_bits(block.label, &block.decode()?)
}

/// Returns the length in bits of an RSA key in a block with this label, or `None` for other keys.
fn rsa_bits(label: &str, der: &[u8]) -> Option<u32> {
    let is_rsa = |index| field(der, index).is_some_and(|field| RSA_IDENTIFIERS.contains(&field));
    let modulus = match label {
        PKCS1_PUBLIC => field(der, 0),
        PKCS1 => field(der, 1),
        SPKI if is_rsa(0) => content(field(der, 1)?)?
            .split_first()
            .and_then(|(_, key)| field(key, 0)),
        PKCS8 if is_rsa(1) => field(content(field(der, 2)?)?, 1),
        _ => None,
    };
    Some(facts::bits(content(modulus?)?))
}

/// Returns an element inside the first element.
fn field(bytes: &[u8], index: usize) -> Option<&[u8]> {
    elements(content(bytes)?).nth(index)
}

fn content(bytes: &[u8]) -> Option<&[u8]> {
    split_element(bytes).map(|(_, content, _)| content)
}

/// A curve with its hash, and their DER identifiers.
pub(super) struct EcdsaAlgorithm {
    signing: &'static EcdsaSigningAlgorithm,
    /// The identifier of the signature algorithm.
    identifier: &'static [u8],
    /// The identifier of keys on the curve.
    of_key: &'static [u8],
}

/// Parses a key on the first curve that accepts it.
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

/// The identifier of RSA keys, with the required parameters and without parameters.
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
const PKCS1_PUBLIC: &str = "RSA PUBLIC KEY";
const SPKI: &str = "PUBLIC KEY";
const PKCS8: &str = "PRIVATE KEY";
const SEC1: &str = "EC PRIVATE KEY";
const ENCRYPTED_PKCS8: &str = "ENCRYPTED PRIVATE KEY";

/// A block that some tools write before a SEC1 key. The key repeats its contents.
const EC_PARAMETERS: &str = "EC PARAMETERS";

const ENCRYPTED: &str = "must not be encrypted";
const NOT_A_PRIVATE_KEY: &str =
    "is malformed: it must be a PEM-encoded private key in the form of PKCS#1, SEC1 or PKCS#8";
const NOT_A_KNOWN_KEY: &str = "is malformed: it must be an RSA key of 1024 to 8192 bits, an ECDSA key on P-256, P-384 or P-521, \
     or an Ed25519 key";
