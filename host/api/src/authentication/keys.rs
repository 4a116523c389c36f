//! The public keys that verify tokens, as configured or published.

use aws_lc_rs::{
    encoding::AsDer,
    rsa::{PublicEncryptingKey, PublicKey},
    signature::{
        ECDSA_P256_SHA256_FIXED, ParsedPublicKey, RSA_PKCS1_2048_8192_SHA256,
        RsaPublicKeyComponents,
    },
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use jsonwebtoken::{Algorithm, DecodingKey};
use keywright_core::text::sanitized;
use serde::Deserialize;
use serde_json::Value;

/// A public key, RSA or P-256, and its algorithm: each type of key has exactly one. A token's header must match it, and never
/// determines how the key is used. A key is validated when it is parsed, so that an operator learns about an unusable key before
/// the first token.
#[derive(Clone)]
pub(crate) struct VerificationKey {
    pub(super) algorithm: Algorithm,
    key: ParsedPublicKey,
}

/// A key can't be used to verify tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VerificationKeyError {
    /// The type of the key is not supported.
    #[error("the verification key is neither an RSA nor a P-256 public key in PEM")]
    Malformed,
    /// An RSA key is too short to be secure, or too long to verify fast.
    #[error("the RSA key must have 2048 to 8192 bits")]
    LengthRefused,
}

impl PartialEq for VerificationKey {
    fn eq(&self, other: &Self) -> bool {
        self.key.as_ref() == other.key.as_ref()
    }
}

impl VerificationKey {
    /// Parses an RSA or P-256 public key in PEM. Certificates and private keys are rejected.
    pub(super) fn of_pem(pem: &str) -> Result<Self, VerificationKeyError> {
        if !PEM_LABELS.iter().any(|label| pem.contains(label)) {
            return Err(VerificationKeyError::Malformed);
        }
        let bytes = |key: &DecodingKey| key.try_get_as_bytes().map(<[u8]>::to_vec);
        if let Ok(der) = DecodingKey::from_rsa_pem(pem.as_bytes()).and_then(|key| bytes(&key)) {
            return Self::rsa(&der);
        }
        DecodingKey::from_ec_pem(pem.as_bytes())
            .and_then(|key| bytes(&key))
            .map_err(|_| VerificationKeyError::Malformed)
            .and_then(|point| Self::p256(&point))
    }

    /// Parses the fields `n` and `e` of a JWK (RFC 7518, section 6.3.1). Leading zeros, which some providers write, are accepted.
    pub(crate) fn of_rsa_components(
        modulus: &str,
        exponent: &str,
    ) -> Result<Self, VerificationKeyError> {
        let number = |text: &str| {
            let bytes = URL_SAFE_NO_PAD
                .decode(text)
                .map_err(|_| VerificationKeyError::Malformed)?;
            let number = bytes.into_iter().skip_while(|byte| *byte == 0);
            Ok::<_, VerificationKeyError>(number.collect::<Vec<u8>>())
        };
        let components = RsaPublicKeyComponents {
            n: number(modulus)?,
            e: number(exponent)?,
        };
        let der = components
            .as_der()
            .map_err(|_| VerificationKeyError::Malformed)?;
        Self::rsa(der.as_ref())
    }

    /// Parses the fields `x` and `y` of a P-256 JWK (RFC 7518, section 6.2.1): 32 bytes each.
    fn of_p256_coordinates(x: &str, y: &str) -> Result<Self, VerificationKeyError> {
        let mut point = vec![UNCOMPRESSED_POINT];
        for coordinate in [x, y] {
            let bytes = URL_SAFE_NO_PAD
                .decode(coordinate)
                .ok()
                .filter(|bytes| bytes.len() == COORDINATE_BYTES)
                .ok_or(VerificationKeyError::Malformed)?;
            point.extend(bytes);
        }
        Self::p256(&point)
    }

    /// Returns whether the key, with its algorithm, has signed a message.
    pub(super) fn has_signed(&self, message: &str, signature: &[u8]) -> bool {
        self.key.verify_sig(message.as_bytes(), signature).is_ok()
    }

    fn rsa(der: &[u8]) -> Result<Self, VerificationKeyError> {
        let key = PublicKey::from_der(der).map_err(|_| VerificationKeyError::Malformed)?;
        let key = key.as_der().map_err(|_| VerificationKeyError::Malformed)?;
        // This type accepts only keys of 2,048 to 8,192 bits.
        PublicEncryptingKey::from_der(key.as_ref())
            .map_err(|_| VerificationKeyError::LengthRefused)?;
        let key = ParsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, key.as_ref())
            .map_err(|_| VerificationKeyError::Malformed)?;
        Ok(Self {
            algorithm: Algorithm::RS256,
            key,
        })
    }

    fn p256(point: &[u8]) -> Result<Self, VerificationKeyError> {
        let is_uncompressed = point.len() == 1 + 2 * COORDINATE_BYTES;
        let key = is_uncompressed
            .then(|| ParsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point))
            .and_then(Result::ok)
            .ok_or(VerificationKeyError::Malformed)?;
        Ok(Self {
            algorithm: Algorithm::ES256,
            key,
        })
    }
}

/// A key set (RFC 7517, section 5), as it was published.
#[derive(Deserialize)]
pub(super) struct PublishedKeys {
    keys: Vec<Value>,
}

/// The usable keys of a key set.
#[derive(Default)]
pub(super) struct UsableKeys {
    /// The keys to verify tokens with.
    pub(super) keys: Vec<TrustedKey>,
    /// Log messages about the first keys that are for tokens but can't be used.
    pub(super) ignored: Vec<String>,
}

/// A published key (RFC 7517, section 4; RFC 7518, section 6).
#[derive(Deserialize)]
struct PublishedKey {
    kty: String,
    kid: Option<String>,
    alg: Option<String>,
    #[serde(rename = "use")]
    key_use: Option<String>,
    key_ops: Option<Vec<String>>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

impl PublishedKeys {
    /// Returns the RSA keys for RS256 and the P-256 keys for ES256. Keys of other types and for other uses are ignored silently:
    /// the provider publishes them for other services.
    pub(super) fn usable(self) -> UsableKeys {
        let mut usable = UsableKeys::default();
        for published in self.keys {
            let Ok(published) = serde_json::from_value::<PublishedKey>(published) else {
                usable.ignore(None, "does not conform to RFC 7517");
                continue;
            };
            if !published.is_for_tokens() {
                continue;
            }
            let reason = match published.verification_key() {
                Ok(key) if usable.keys.len() < KEYS_MAX => {
                    let id = published.kid;
                    usable.keys.push(TrustedKey { id, key });
                    continue;
                }
                Ok(_) => "too many keys",
                Err(VerificationKeyError::LengthRefused) => "must have 2048 to 8192 bits",
                Err(VerificationKeyError::Malformed) => "malformed public key",
            };
            usable.ignore(published.kid.as_deref(), reason);
        }
        usable
    }
}

impl UsableKeys {
    fn ignore(&mut self, key_id: Option<&str>, reason: &str) {
        if self.ignored.len() == LOGGED_KEYS_MAX {
            return;
        }
        let key_id = sanitized(key_id.unwrap_or("without an id"));
        self.ignored.push(format!("{key_id}: {reason}"));
    }
}

impl PublishedKey {
    /// Returns whether the key may verify tokens. Without `alg`, `use` or `key_ops`, the field permits it.
    fn is_for_tokens(&self) -> bool {
        let algorithm = match (self.kty.as_str(), self.crv.as_deref()) {
            ("RSA", _) => "RS256",
            ("EC", Some("P-256")) => "ES256",
            _ => return false,
        };
        let mut operations = self.key_ops.iter();
        self.alg.as_deref().is_none_or(|name| name == algorithm)
            && self.key_use.as_deref().is_none_or(|name| name == "sig")
            && operations.all(|names| names.iter().any(|name| name == "verify"))
    }

    /// Parses the key. A missing field counts as malformed, like an empty one.
    fn verification_key(&self) -> Result<VerificationKey, VerificationKeyError> {
        let [n, e, x, y] =
            [&self.n, &self.e, &self.x, &self.y].map(|field| field.as_deref().unwrap_or_default());
        if self.kty == "RSA" {
            VerificationKey::of_rsa_components(n, e)
        } else {
            VerificationKey::of_p256_coordinates(x, y)
        }
    }
}

/// A key of a trusted issuer.
#[derive(PartialEq)]
pub(super) struct TrustedKey {
    /// The key id in the headers of tokens, if it has one.
    pub(super) id: Option<String>,
    pub(super) key: VerificationKey,
}

const PEM_LABELS: [&str; 2] = [
    "-----BEGIN PUBLIC KEY-----",
    "-----BEGIN RSA PUBLIC KEY-----",
];

/// The prefix of an uncompressed point (SEC 1, section 2.3.3).
const UNCOMPRESSED_POINT: u8 = 4;

/// The length of a P-256 coordinate, in bytes.
const COORDINATE_BYTES: usize = 32;

/// Maximum number of keys used from a provider.
const KEYS_MAX: usize = 32;

/// Maximum number of ignored keys in the log.
const LOGGED_KEYS_MAX: usize = 32;

/// A signing key for tests.
#[cfg(test)]
pub(super) mod test_key {
    use aws_lc_rs::{
        rand::SystemRandom,
        signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair},
    };
    use serde_json::{Value, json};

    use super::{Engine, URL_SAFE_NO_PAD, VerificationKey};

    /// A P-256 key, which is fast to generate.
    pub(crate) struct TestKey(EcdsaKeyPair);

    impl TestKey {
        pub(crate) fn generate() -> Self {
            Self(EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap())
        }

        pub(crate) fn verification_key(&self) -> VerificationKey {
            let point = self.0.public_key().as_ref();
            let coordinate = |from: usize| URL_SAFE_NO_PAD.encode(&point[from..from + 32]);
            VerificationKey::of_p256_coordinates(&coordinate(1), &coordinate(33)).unwrap()
        }

        pub(crate) fn sign(&self, claims: &Value) -> String {
            let part = |json: &Value| URL_SAFE_NO_PAD.encode(json.to_string());
            let message = format!("{}.{}", part(&json!({"alg": "ES256"})), part(claims));
            let random = SystemRandom::new();
            let signature = self.0.sign(&random, message.as_bytes()).unwrap();
            format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature.as_ref()))
        }
    }
}

#[cfg(test)]
mod tests;
