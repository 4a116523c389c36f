//! Reading certificates: what they say, and who signed them.

use aws_lc_rs::signature::{
    ECDSA_P256_SHA512_ASN1, ECDSA_P384_SHA512_ASN1, ECDSA_P521_SHA256_ASN1, ECDSA_P521_SHA384_ASN1,
    ECDSA_P521_SHA512_ASN1, EcdsaVerificationAlgorithm, UnparsedPublicKey,
};
use chrono::DateTime;
use keywright_core::certificate::{CertificateFacts, IssuanceFacts, SerialNumber, SigningUsages};
use x509_parser::{
    asn1_rs::{Oid, oid},
    certificate::{TbsCertificate, X509Certificate},
    oid_registry::{
        OID_EC_P256, OID_NIST_EC_P384, OID_NIST_EC_P521, OID_SIG_ECDSA_WITH_SHA256,
        OID_SIG_ECDSA_WITH_SHA384, OID_SIG_ECDSA_WITH_SHA512, OID_SIG_ED25519,
    },
    prelude::FromDer,
    public_key::PublicKey,
    x509::SubjectPublicKeyInfo,
};

use super::pem::PemBlock;

/// The DER of the first certificate in a PEM text.
pub(super) fn first_certificate(pem: &str) -> Option<Vec<u8>> {
    all_certificates(pem).next()?
}

/// The DER of each certificate in a PEM text; `None` for one that is not base64.
pub(super) fn all_certificates(pem: &str) -> impl Iterator<Item = Option<Vec<u8>>> {
    PemBlock::all(pem)
        .filter(|block| CERTIFICATE_LABELS.contains(&block.label))
        .map(|block| Some(block.decode()?.to_vec()))
}

/// Parses a certificate that is all of the bytes.
pub(super) fn parse(der: &[u8]) -> Option<X509Certificate<'_>> {
    let (rest, certificate) = X509Certificate::from_der(der).ok()?;
    rest.is_empty().then_some(certificate)
}

/// What a certificate says of itself; none when its validity is beyond what can be told.
pub(super) fn facts(certificate: &X509Certificate<'_>) -> Option<CertificateFacts> {
    Some(CertificateFacts {
        expires_at: DateTime::from_timestamp(certificate.validity().not_after.timestamp(), 0)?,
        is_certificate_authority: certificate.is_ca(),
        is_self_signed: is_self_signed(certificate),
        key_length_bits: key_length_bits(certificate.public_key()),
        serial_number: Some(SerialNumber::new(certificate.raw_serial().to_vec())),
    })
}

/// Returns whether the parser reads every extension that the host goes by.
pub(super) fn has_readable_extensions(certificate: &X509Certificate<'_>) -> bool {
    certificate.basic_constraints().is_ok()
        && certificate.key_usage().is_ok()
        && certificate.extended_key_usage().is_ok()
        && certificate.subject_alternative_name().is_ok()
}

/// What it would take to issue a certificate like this one.
pub(super) fn issuance_facts(certificate: &X509Certificate<'_>) -> IssuanceFacts {
    let validity = certificate.validity();
    let (begin, end) = (
        validity.not_before.timestamp(),
        validity.not_after.timestamp(),
    );
    IssuanceFacts {
        duration_days: u32::try_from(end.saturating_sub(begin) / SECONDS_A_DAY)
            .unwrap_or_default()
            .max(1),
        signing_usages: signing_usages(certificate),
    }
}

/// What the key of a certificate may sign for its issuer. What can't be read says nothing.
pub(super) fn signing_usages(tbs: &TbsCertificate<'_>) -> SigningUsages {
    let key_usage = tbs.key_usage().ok().flatten();
    let extended_key_usage = tbs.extended_key_usage().ok().flatten();
    SigningUsages {
        certificates: key_usage
            .as_ref()
            .is_some_and(|usage| usage.value.key_cert_sign()),
        revocation_lists: key_usage.is_some_and(|usage| usage.value.crl_sign()),
        ocsp_responses: extended_key_usage.is_some_and(|usage| usage.value.ocsp_signing),
    }
}

/// Whether a certificate names itself as its issuer, and its own key verifies it.
pub(super) fn is_self_signed(certificate: &X509Certificate<'_>) -> bool {
    certificate.issuer().as_raw() == certificate.subject().as_raw()
        && is_signed_by(certificate, certificate.public_key())
}

/// Whether the key verifies the certificate's signature. Names and validity do not count.
pub(super) fn is_signed_by(
    certificate: &X509Certificate<'_>,
    signer: &SubjectPublicKeyInfo<'_>,
) -> bool {
    let Some(algorithm) = ecdsa_beside_the_parser(certificate, signer) else {
        return certificate.verify_signature(Some(signer)).is_ok();
    };
    UnparsedPublicKey::new(algorithm, &signer.subject_public_key.data)
        .verify(
            certificate.tbs_certificate.as_ref(),
            &certificate.signature_value.data,
        )
        .is_ok()
}

/// The algorithm of an ECDSA signature that the parser of certificates can't verify itself.
fn ecdsa_beside_the_parser(
    certificate: &X509Certificate<'_>,
    signer: &SubjectPublicKeyInfo<'_>,
) -> Option<&'static EcdsaVerificationAlgorithm> {
    let curve = curve(signer)?;
    let signature = &certificate.signature_algorithm.algorithm;
    ECDSA_BESIDE_THE_PARSER
        .iter()
        .find(|(of_curve, of_signature, _)| *of_curve == curve && of_signature == signature)
        .map(|(_, _, algorithm)| *algorithm)
}

fn curve<'a>(key: &SubjectPublicKeyInfo<'a>) -> Option<Oid<'a>> {
    key.algorithm.parameters.as_ref()?.clone().oid().ok()
}

/// The length of a key in bits; 0 when the key is of an unknown kind.
fn key_length_bits(key: &SubjectPublicKeyInfo<'_>) -> u32 {
    if key.algorithm.algorithm == OID_SIG_ED25519 {
        return ED25519_BITS;
    }
    match key.parsed() {
        Ok(PublicKey::RSA(rsa)) => modulus_bits(rsa.modulus),
        Ok(PublicKey::EC(_)) => curve(key)
            .and_then(|curve| CURVE_BITS.iter().find(|(of_curve, _)| *of_curve == curve))
            .map_or(0, |(_, bits)| *bits),
        _ => 0,
    }
}

fn modulus_bits(modulus: &[u8]) -> u32 {
    let mut significant = modulus.iter().skip_while(|byte| **byte == 0);
    let Some(first) = significant.next() else {
        return 0;
    };
    u32::try_from(significant.count())
        .map_or(0, |rest| rest * u8::BITS + u8::BITS - first.leading_zeros())
}

static ECDSA_BESIDE_THE_PARSER: [(Oid<'_>, Oid<'_>, &EcdsaVerificationAlgorithm); 5] = [
    (
        OID_EC_P256,
        OID_SIG_ECDSA_WITH_SHA512,
        &ECDSA_P256_SHA512_ASN1,
    ),
    (
        OID_NIST_EC_P384,
        OID_SIG_ECDSA_WITH_SHA512,
        &ECDSA_P384_SHA512_ASN1,
    ),
    (
        OID_NIST_EC_P521,
        OID_SIG_ECDSA_WITH_SHA256,
        &ECDSA_P521_SHA256_ASN1,
    ),
    (
        OID_NIST_EC_P521,
        OID_SIG_ECDSA_WITH_SHA384,
        &ECDSA_P521_SHA384_ASN1,
    ),
    (
        OID_NIST_EC_P521,
        OID_SIG_ECDSA_WITH_SHA512,
        &ECDSA_P521_SHA512_ASN1,
    ),
];

static CURVE_BITS: [(Oid<'_>, u32); 4] = [
    (OID_EC_P256, 256),
    (OID_NIST_EC_P384, 384),
    (OID_NIST_EC_P521, 521),
    (SECP256K1, 256),
];

const SECP256K1: Oid<'static> = oid!(1.3.132.0.10);
const ED25519_BITS: u32 = 256;

const SECONDS_A_DAY: i64 = 24 * 60 * 60;

/// What a block with a certificate may call itself (RFC 7468, section 5).
const CERTIFICATE_LABELS: [&str; 2] = ["CERTIFICATE", "X509 CERTIFICATE"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bits_of_a_modulus_are_those_from_its_first_one() {
        for (modulus, bits) in [
            (&[0x00, 0x80, 0x00][..], 16),
            (&[0x01, 0x00], 9),
            (&[0x00, 0x00], 0),
            (&[], 0),
        ] {
            assert_eq!(modulus_bits(modulus), bits);
        }
    }
}
