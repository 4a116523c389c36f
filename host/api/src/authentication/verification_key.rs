//! A public key to verify tokens with: RSA or P-256.

use aws_lc_rs::{
    encoding::AsDer,
    rsa::{PublicEncryptingKey, PublicKey},
    signature::{
        ECDSA_P256_SHA256_FIXED, ParsedPublicKey, RSA_PKCS1_2048_8192_SHA256,
        RsaPublicKeyComponents,
    },
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use jsonwebtoken::DecodingKey;

/// The signature algorithm of a token (RFC 7518, section 3.1). Each type of key has exactly one algorithm. The token's header
/// must match it, and never determines how the key is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SignatureAlgorithm {
    /// ECDSA on P-256 with SHA-256.
    Es256,
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    Rs256,
}

/// A public key and its algorithm.
#[derive(Clone)]
pub(crate) struct VerificationKey {
    algorithm: SignatureAlgorithm,
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

impl SignatureAlgorithm {
    /// Returns the algorithm with this name in a header; case-sensitive.
    pub(super) fn named(name: &str) -> Option<Self> {
        match name {
            "ES256" => Some(Self::Es256),
            "RS256" => Some(Self::Rs256),
            _ => None,
        }
    }

    /// Returns the name in headers and key sets.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Es256 => "ES256",
            Self::Rs256 => "RS256",
        }
    }
}

impl PartialEq for VerificationKey {
    fn eq(&self, other: &Self) -> bool {
        self.algorithm == other.algorithm && self.key.as_ref() == other.key.as_ref()
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
    pub(super) fn of_p256_coordinates(x: &str, y: &str) -> Result<Self, VerificationKeyError> {
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

    pub(super) fn algorithm(&self) -> SignatureAlgorithm {
        self.algorithm
    }

    /// Returns whether the signature of a message is valid.
    pub(super) fn has_signed(&self, message: &str, signature: &[u8]) -> bool {
        self.key.verify_sig(message.as_bytes(), signature).is_ok()
    }

    fn rsa(der: &[u8]) -> Result<Self, VerificationKeyError> {
        let key = PublicKey::from_der(der).map_err(|_| VerificationKeyError::Malformed)?;
        let key = key.as_der().map_err(|_| VerificationKeyError::Malformed)?;
        // This type provides the length of an RSA key.
        let bits = PublicEncryptingKey::from_der(key.as_ref()).map(|key| key.key_size_bits());
        if !bits.is_ok_and(|bits| (MODULUS_BITS_MIN..=MODULUS_BITS_MAX).contains(&bits)) {
            return Err(VerificationKeyError::LengthRefused);
        }
        let key = ParsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, key.as_ref())
            .map_err(|_| VerificationKeyError::Malformed)?;
        Ok(Self {
            algorithm: SignatureAlgorithm::Rs256,
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
            algorithm: SignatureAlgorithm::Es256,
            key,
        })
    }
}

const PEM_LABELS: [&str; 2] = [
    "-----BEGIN PUBLIC KEY-----",
    "-----BEGIN RSA PUBLIC KEY-----",
];

const MODULUS_BITS_MIN: usize = 2_048;
const MODULUS_BITS_MAX: usize = 8_192;

/// The prefix of an uncompressed point (SEC 1, section 2.3.3).
const UNCOMPRESSED_POINT: u8 = 4;

/// The length of a P-256 coordinate, in bytes.
const COORDINATE_BYTES: usize = 32;

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
mod tests {
    use super::*;

    #[test]
    fn invalid_coordinates_are_rejected() {
        // The base point of P-256 (FIPS 186-4, D.1.2.3).
        let x = "axfR8uEsQkf4vOblY6RA8ncDfYEt6zOg9KE5RdiYwpY";
        let y = "T-NC4v4af5uO5-tKfA-eFivOM1drMV7Oy7ZAaDe_UfU";
        assert!(VerificationKey::of_p256_coordinates(x, y).is_ok());
        for (x, y) in [
            (y, x),
            (x, x),
            ("", ""),
            (x, ""),
            ("AA", "AA"),
            (&format!("AAAA{x}"), y),
            ("!", y),
        ] {
            let refused = VerificationKey::of_p256_coordinates(x, y).err();
            assert_eq!(refused, Some(VerificationKeyError::Malformed), "{x} {y}");
        }
    }

    #[test]
    fn an_rsa_key_has_2048_to_8192_bits() {
        for (bytes, refused) in [
            (128, Some(VerificationKeyError::LengthRefused)),
            (255, Some(VerificationKeyError::LengthRefused)),
            (256, None),
            (1_024, None),
            (1_025, Some(VerificationKeyError::LengthRefused)),
        ] {
            let modulus = URL_SAFE_NO_PAD.encode(vec![0xff; bytes]);
            let read = VerificationKey::of_rsa_components(&modulus, "AQAB");
            assert_eq!(read.err(), refused, "{bytes}");
        }
        let modulus = URL_SAFE_NO_PAD.encode([vec![0], vec![0xff; 256]].concat());
        assert!(VerificationKey::of_rsa_components(&modulus, "AQAB").is_ok());
    }

    #[test]
    fn malformed_numbers_are_rejected() {
        let modulus = URL_SAFE_NO_PAD.encode(vec![0xff; 256]);
        for (modulus, exponent) in [
            ("", "AQAB"),
            ("!", "AQAB"),
            (modulus.as_str(), ""),
            (modulus.as_str(), "AA"),
            (modulus.as_str(), "AQ"),
            (modulus.as_str(), "!"),
        ] {
            let read = VerificationKey::of_rsa_components(modulus, exponent);
            assert_eq!(
                read.err(),
                Some(VerificationKeyError::Malformed),
                "{exponent}"
            );
        }
    }
}
