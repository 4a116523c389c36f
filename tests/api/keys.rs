//! Parsing generated keys and certificates.

use x509_parser::{
    pem::parse_x509_pem,
    prelude::{FromDer, SubjectPublicKeyInfo, X509Certificate},
    public_key::PublicKey,
};

/// Asserts that a text is one PEM block with this label, in lines of 64 characters, each ended by LF.
#[track_caller]
pub(crate) fn assert_is_pem(text: &str, label: &str) {
    let body = text
        .strip_prefix(&format!("-----BEGIN {label}-----\n"))
        .and_then(|rest| rest.strip_suffix(&format!("\n-----END {label}-----\n")))
        .unwrap();
    let mut lines = body.split('\n').rev();
    assert!((1..=64).contains(&lines.next().unwrap().len()), "{text}");
    assert!(lines.all(|line| line.len() == 64), "{text}");
}

/// Returns the DER inside the first PEM block of a text.
pub(crate) fn der(pem: &str) -> Vec<u8> {
    parse_x509_pem(pem.as_bytes()).unwrap().1.contents
}

/// Returns the length of a public RSA key (`SubjectPublicKeyInfo`, PEM) in bits.
pub(crate) fn public_key_bits(pem: &str) -> usize {
    let der = der(pem);
    rsa_bits(&SubjectPublicKeyInfo::from_der(&der).unwrap().1)
}

/// Parses a certificate (PEM), and passes it to a function.
pub(crate) fn with_certificate<T>(pem: &str, read: impl FnOnce(&X509Certificate<'_>) -> T) -> T {
    let der = der(pem);
    let (rest, certificate) = X509Certificate::from_der(&der).unwrap();
    assert!(rest.is_empty());
    read(&certificate)
}

/// Returns the validity of a certificate, in days.
pub(crate) fn certificate_days(pem: &str) -> i64 {
    with_certificate(pem, |certificate| {
        let validity = certificate.validity();
        (validity.not_after.timestamp() - validity.not_before.timestamp()) / 86_400
    })
}

/// Returns the length of a certificate's RSA key, in bits.
pub(crate) fn certificate_key_bits(pem: &str) -> usize {
    with_certificate(pem, |certificate| rsa_bits(certificate.public_key()))
}

fn rsa_bits(public_key: &SubjectPublicKeyInfo<'_>) -> usize {
    match public_key.parsed().unwrap() {
        PublicKey::RSA(key) => key.key_size(),
        other => panic!("not an RSA key: {other:?}"),
    }
}
