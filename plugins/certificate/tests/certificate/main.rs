//! Tests of the plugin without a host: they generate certificates with a fixed random stream, and sign them with a native CA.
#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a panic fails the test"
)]

mod contents;
mod recover;

use std::{fs, path::Path};

use keywright_plugin_certificate::{generate, issuer::Issuer, parameters::normalize, pem, tbs};
use keywright_plugin_support::Failure;
use rand::{SeedableRng, rngs::ChaCha12Rng};
use rsa::{
    RsaPrivateKey,
    pkcs1::DecodeRsaPrivateKey,
    pkcs1v15::SigningKey,
    signature::{SignatureEncoding, Signer},
};
use serde_json::Value;
use sha2::Sha256;
use x509_parser::{
    extensions::ParsedExtension,
    prelude::{FromDer, X509Certificate},
};

/// 2026-11-21T12:00:00Z.
pub(crate) const NOW_SECONDS: u64 = 1_795_262_400;

/// Creates a CA from a generated value. It signs with a key in memory.
pub(crate) fn authority(value: &Value) -> Issuer<'static> {
    let certificate = der(value, "certificate");
    let (_, parsed) = X509Certificate::from_der(&certificate).unwrap();
    let identifier =
        parsed
            .iter_extensions()
            .find_map(|extension| match extension.parsed_extension() {
                ParsedExtension::SubjectKeyIdentifier(identifier) => Some(identifier.0.to_vec()),
                _ => None,
            });
    let key = RsaPrivateKey::from_pkcs1_pem(value["private_key"].as_str().unwrap()).unwrap();
    let key = SigningKey::<Sha256>::new(key);
    Issuer {
        subject: parsed.subject().as_raw().to_vec(),
        subject_key_identifier: identifier,
        signature_algorithm: SHA256_WITH_RSA.to_vec(),
        sign_certificate: Box::new(move |body| {
            Ok(tbs::certificate(body, &key.sign(body).to_vec()).unwrap())
        }),
        certificate,
    }
}

/// Generates a value like the host, which first converts the parameters to their canonical form.
pub(crate) fn generated(
    parameters: &Value,
    now_seconds: u64,
    issuer: Option<&Issuer<'_>>,
    seed: u64,
) -> Result<Value, Failure> {
    let canonical = normalize(&parameters.to_string(), "{}")?;
    let random = &mut ChaCha12Rng::seed_from_u64(seed);
    let value = generate::generate(&canonical, "{}", now_seconds, issuer, random)?;
    Ok(serde_json::from_str(&value).unwrap())
}

/// Returns one of the certificates in `tests/keys`, which other programs generated, in PEM.
pub(crate) fn foreign(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/keys");
    fs::read_to_string(folder.join(name).with_extension("pem")).unwrap()
}

/// Returns the DER of the certificate in a field.
pub(crate) fn der(value: &Value, field: &str) -> Vec<u8> {
    pem::first_certificate(value[field].as_str().unwrap()).unwrap()
}

/// `sha256WithRSAEncryption` with its NULL.
const SHA256_WITH_RSA: [u8; 15] = [
    0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0b, 0x05, 0x00,
];
