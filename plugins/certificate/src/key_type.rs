//! The supported key types.

use keywright_plugin_support::{Fields, KeyLength, Violation};
use rcgen::{
    PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ED25519, PKCS_RSA_SHA256,
    SignatureAlgorithm,
};
use serde::{Deserialize, Serialize};

use crate::usage::KeyUsage;

/// The type and length of a certificate's key.
///
/// Canonical parameters contain only `key_length` for RSA, the default, and only `key_type` for the other types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "KeyFields", try_from = "KeyFields")]
pub enum KeyType {
    /// RSA with a modulus of this length. Signatures use PKCS#1 v1.5 and SHA-256 (RFC 8017).
    Rsa(KeyLength),
    /// ECDSA on P-256 with SHA-256 (FIPS 186-5).
    EcdsaP256,
    /// ECDSA on P-384 with SHA-384 (FIPS 186-5).
    EcdsaP384,
    /// Ed25519 (RFC 8032).
    Ed25519,
}

impl KeyType {
    /// Takes the parameters `key_type` and `key_length` from the caller's parameters.
    pub fn take(fields: &mut Fields) -> Result<Self, Violation> {
        let name = fields
            .take_filled_text(KEY_TYPE)?
            .unwrap_or_else(|| RSA.to_owned());
        if name == RSA {
            return KeyLength::take(fields).map(Self::Rsa);
        }
        let key_type = Self::named(&name)
            .ok_or_else(|| Violation::of(KEY_TYPE, format!("must be one of {RSA}, {OTHERS}")))?;
        if fields.has(KEY_LENGTH) {
            return Err(Violation::of(
                KEY_LENGTH,
                format!("is only allowed for keys of type {RSA}, not {name}"),
            ));
        }
        Ok(key_type)
    }

    /// Returns the algorithm of the key and its signatures in certificates.
    pub fn algorithm(self) -> &'static SignatureAlgorithm {
        match self {
            Self::Rsa(_) => &PKCS_RSA_SHA256,
            Self::EcdsaP256 => &PKCS_ECDSA_P256_SHA256,
            Self::EcdsaP384 => &PKCS_ECDSA_P384_SHA384,
            Self::Ed25519 => &PKCS_ED25519,
        }
    }

    /// Returns whether a certificate with this type of key may assert a usage (RFC 8813, section 3, for ECDSA; RFC 9295,
    /// section 3, for Ed25519).
    pub fn may_assert(self, usage: KeyUsage) -> bool {
        match self {
            Self::Rsa(_) => true,
            Self::EcdsaP256 | Self::EcdsaP384 => !matches!(
                usage,
                KeyUsage::KeyEncipherment | KeyUsage::DataEncipherment
            ),
            Self::Ed25519 => !matches!(
                usage,
                KeyUsage::KeyEncipherment
                    | KeyUsage::DataEncipherment
                    | KeyUsage::KeyAgreement
                    | KeyUsage::EncipherOnly
                    | KeyUsage::DecipherOnly
            ),
        }
    }

    /// Returns the name of the type in the API.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rsa(_) => RSA,
            Self::EcdsaP256 => ECDSA_P256,
            Self::EcdsaP384 => ECDSA_P384,
            Self::Ed25519 => ED25519,
        }
    }

    fn named(name: &str) -> Option<Self> {
        match name {
            ECDSA_P256 => Some(Self::EcdsaP256),
            ECDSA_P384 => Some(Self::EcdsaP384),
            ED25519 => Some(Self::Ed25519),
            _ => None,
        }
    }
}

impl Default for KeyType {
    fn default() -> Self {
        Self::Rsa(KeyLength::default())
    }
}

/// The two parameters in canonical form. Exactly one is present.
#[derive(Default, Serialize, Deserialize)]
struct KeyFields {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key_length: Option<KeyLength>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key_type: Option<String>,
}

impl From<KeyType> for KeyFields {
    fn from(key_type: KeyType) -> Self {
        match key_type {
            KeyType::Rsa(key_length) => Self {
                key_length: Some(key_length),
                key_type: None,
            },
            other => Self {
                key_length: None,
                key_type: Some(other.name().to_owned()),
            },
        }
    }
}

impl TryFrom<KeyFields> for KeyType {
    type Error = &'static str;

    fn try_from(fields: KeyFields) -> Result<Self, Self::Error> {
        match (fields.key_length, fields.key_type) {
            (Some(key_length), None) => Some(Self::Rsa(key_length)),
            (None, Some(name)) => Self::named(&name),
            _ => None,
        }
        .ok_or("must have either key_length or key_type")
    }
}

const KEY_TYPE: &str = "key_type";
const KEY_LENGTH: &str = "key_length";
const RSA: &str = "rsa";
const ECDSA_P256: &str = "ecdsa-p256";
const ECDSA_P384: &str = "ecdsa-p384";
const ED25519: &str = "ed25519";
const OTHERS: &str = "ecdsa-p256, ecdsa-p384, ed25519";
