//! Certificates set by callers, each with one change: random with a fixed seed, or by a rule.

use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use rand::{RngExt, SeedableRng, rngs::ChaCha12Rng};
use rustls::pki_types::{PrivatePkcs8KeyDer, pem::PemObject};

use super::{
    bodies, overreaching,
    tree::{BIT_STRING, Node, SEQUENCE},
};

/// A changed certificate with its private key.
pub(crate) struct Mutant {
    pub(crate) name: String,
    pub(crate) certificate: String,
}

/// Returns copies of the certificate, each with one byte changed and the old signature.
pub(crate) fn with_one_byte_changed(certificate: &[u8], count: usize) -> Vec<Mutant> {
    let mut random = ChaCha12Rng::seed_from_u64(SEED);
    let mutants = (0..count).map(|_| {
        let at = random.random_range(0..certificate.len());
        let mut changed = certificate.to_vec();
        changed[at] ^= random.random_range(1..=0xff_u8);
        mutant(format!("byte {at} is {:#04x}", changed[at]), &changed)
    });
    mutants.collect()
}

/// Returns the certificate with one malformed element, signed again with its own key.
pub(crate) fn malformed(certificate: &[u8], key: &str) -> Vec<Mutant> {
    let certificate = Node::parse(certificate);
    let body = certificate.clone().at(&[0]).clone();
    let mut attacks = bodies::malformed(&body);
    attacks.extend(overreaching::structures());
    let mutants = attacks.into_iter().map(|(name, change)| {
        let mut body = body.clone();
        change(&mut body);
        mutant(name, &signed_again(&certificate, &body, key))
    });
    mutants.collect()
}

/// Returns the certificate with another body.
fn signed_again(certificate: &Node, body: &Node, key: &str) -> Vec<u8> {
    let key = PrivatePkcs8KeyDer::from_pem_slice(key.as_bytes()).unwrap();
    let algorithm = &ECDSA_P256_SHA256_ASN1_SIGNING;
    let key = EcdsaKeyPair::from_pkcs8(algorithm, key.secret_pkcs8_der()).unwrap();
    let random = aws_lc_rs::rand::SystemRandom::new();
    let signature = key.sign(&random, &body.to_der()).unwrap();
    let algorithm = certificate.clone().at(&[1]).clone();
    let bits = Node::new(BIT_STRING, &[&[0], signature.as_ref()].concat());
    Node::of(SEQUENCE, vec![body.clone(), algorithm, bits]).to_der()
}

fn mutant(name: String, der: &[u8]) -> Mutant {
    Mutant {
        name,
        certificate: pem(der),
    }
}

/// Returns a certificate as PEM, in lines of 64 characters.
pub(crate) fn pem(der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let lines: Vec<_> = text
        .as_bytes()
        .chunks(64)
        .map(String::from_utf8_lossy)
        .collect();
    format!(
        "-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n",
        lines.join("\n")
    )
}

const SEED: u64 = 17;
