//! A signing key for tests.

use aws_lc_rs::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair},
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use super::verification_key::VerificationKey;

/// A P-256 key, which is fast to generate.
pub(super) struct TestKey(EcdsaKeyPair);

impl TestKey {
    pub(super) fn generate() -> Self {
        Self(EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap())
    }

    pub(super) fn verification_key(&self) -> VerificationKey {
        let point = self.0.public_key().as_ref();
        let coordinate = |from: usize| URL_SAFE_NO_PAD.encode(&point[from..from + 32]);
        VerificationKey::of_p256_coordinates(&coordinate(1), &coordinate(33)).unwrap()
    }

    pub(super) fn sign(&self, claims: &Value) -> String {
        let part = |json: &Value| URL_SAFE_NO_PAD.encode(json.to_string());
        let message = format!("{}.{}", part(&json!({"alg": "ES256"})), part(claims));
        let random = SystemRandom::new();
        let signature = self.0.sign(&random, message.as_bytes()).unwrap();
        format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature.as_ref()))
    }
}
