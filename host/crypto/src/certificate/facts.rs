//! Reads facts from certificates, including the identity and the purpose of client certificates. The chain of client certificates
//! is verified elsewhere.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use keywright_core::certificate::{
    CertificateFacts, ClientAuthorityFacts, ClientCertificateFacts, IssuanceFacts, SerialNumber,
    SigningUsages,
};
use keywright_der::{
    character, split_element,
    tag::{
        BMP_STRING, IA5_STRING, NUMERIC_STRING, PRINTABLE_STRING, TELETEX_STRING, UNIVERSAL_STRING,
        UTF8_STRING, VISIBLE_STRING,
    },
};
use x509_parser::{
    asn1_rs::{Class, Oid, oid},
    certificate::{TbsCertificate, X509Certificate},
    extensions::X509Extension,
    oid_registry::{
        OID_EC_P256, OID_KEY_TYPE_EC_PUBLIC_KEY, OID_NIST_EC_P384, OID_NIST_EC_P521,
        OID_PKCS1_RSAENCRYPTION, OID_PKCS1_RSASSAPSS, OID_SIG_ED25519,
        OID_X509_EXT_BASIC_CONSTRAINTS, OID_X509_EXT_EXTENDED_KEY_USAGE, OID_X509_EXT_KEY_USAGE,
        OID_X509_EXT_SUBJECT_ALT_NAME,
    },
    prelude::FromDer,
    x509::{AttributeTypeAndValue, SubjectPublicKeyInfo, X509Name},
};

use super::{
    pem::{self, PemBlock},
    signature::{curve, is_made_by},
};

pub(super) fn first_certificate(pem: &str) -> Option<Vec<u8>> {
    all_certificates(pem).next()?
}

/// Returns the DER of each certificate in a PEM text, or `None` for a certificate that is not base64.
pub(super) fn all_certificates(pem: &str) -> impl Iterator<Item = Option<Vec<u8>>> {
    PemBlock::all(pem)
        .filter(|block| CERTIFICATE_LABELS.contains(&block.label))
        .map(|block| Some(block.decode()?.to_vec()))
}

/// Returns the text to store for certificates: the original text if every program finds the same certificates in it, otherwise
/// only the certificates before the first block without a matching end. All these certificates must be decodable.
pub(super) fn stored_text(pem: &str) -> String {
    let mut before =
        PemBlock::all(pem).take_while(|block| !CERTIFICATE_LABELS.contains(&block.label));
    if before.all(|block| LABELS_BEFORE.contains(&block.label))
        && PemBlock::are_all_found(pem)
        && PemBlock::all(pem)
            .all(|block| block.is_strict() && !SOME_PROGRAMS_READ.contains(&block.label))
    {
        return pem.to_owned();
    }
    all_certificates(pem)
        .flatten()
        .map(|certificate| to_pem(&certificate))
        .collect()
}

/// Returns the PEM text of a certificate.
pub(super) fn to_pem(der: &[u8]) -> String {
    // The label is valid.
    pem::block(CERTIFICATE_LABELS[0], der).unwrap_or_default()
}

/// Parses a certificate. No bytes may follow it.
pub(super) fn parse(der: &[u8]) -> Option<X509Certificate<'_>> {
    let (rest, certificate) = X509Certificate::from_der(der).ok()?;
    rest.is_empty().then_some(certificate)
}

/// Returns the facts in a certificate, or `None` if its validity can't be represented.
pub(super) fn facts(certificate: &X509Certificate<'_>) -> Option<CertificateFacts> {
    Some(CertificateFacts {
        expires_at: expires_at(certificate)?,
        is_certificate_authority: certificate.is_ca(),
        is_self_signed: is_self_signed(certificate),
        key_length_bits: key_length_bits(certificate.public_key()),
        serial_number: Some(SerialNumber::new(certificate.raw_serial().to_vec())),
    })
}

/// Returns the end of a certificate's validity, or `None` if it can't be represented.
pub(super) fn expires_at(certificate: &X509Certificate<'_>) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp(certificate.validity().not_after.timestamp(), 0)
}

/// Returns whether the parser can read every extension that the host interprets. It reports an unreadable extension as absent.
pub(super) fn has_readable_extensions(certificate: &X509Certificate<'_>) -> bool {
    let mut extensions = certificate.iter_extensions();
    !extensions
        .any(|extension| INTERPRETED_EXTENSIONS.contains(&extension.oid) && is_malformed(extension))
}

/// Returns whether the parser can't read an extension.
pub(super) fn is_malformed(extension: &X509Extension<'_>) -> bool {
    extension.parsed_extension().error().is_some()
}

/// The extensions whose contents the host interprets. Only these may be critical in certificates that it signs.
pub(super) const INTERPRETED_EXTENSIONS: [Oid<'static>; 4] = [
    OID_X509_EXT_BASIC_CONSTRAINTS,
    OID_X509_EXT_KEY_USAGE,
    OID_X509_EXT_EXTENDED_KEY_USAGE,
    OID_X509_EXT_SUBJECT_ALT_NAME,
];

/// Returns the permissions needed to issue a certificate like this one.
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

/// Returns the signing usages of a certificate's key. Ignores malformed extensions.
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

/// Returns whether a certificate's signature is by its own key. Its names may be encoded differently.
pub(super) fn is_self_signed(certificate: &X509Certificate<'_>) -> bool {
    is_made_by(certificate, certificate.public_key()) == Ok(true)
}

/// Reads the facts in a client certificate (DER), or returns `None` if it is malformed.
pub fn client_certificate_facts(der: &[u8]) -> Option<ClientCertificateFacts> {
    let certificate = parse(der)?;
    Some(ClientCertificateFacts {
        organization_units: organization_units(&certificate),
        is_for_client_authentication: is_for_client_authentication(&certificate),
        expires_at: facts(&certificate)?.expires_at,
    })
}

/// Reads the facts in the certificate (DER) of a trusted CA for clients, or returns `None` if it is malformed.
pub fn client_authority_facts(der: &[u8]) -> Option<ClientAuthorityFacts> {
    let certificate = parse(der)?;
    let facts = facts(&certificate)?;
    let valid_from = certificate.validity().not_before.timestamp();
    let constraints = certificate.basic_constraints().ok()?;
    Some(ClientAuthorityFacts {
        is_certificate_authority: facts.is_certificate_authority,
        path_length_max: constraints.and_then(|constraints| constraints.value.path_len_constraint),
        valid_from: DateTime::from_timestamp(valid_from, 0)?,
        expires_at: facts.expires_at,
    })
}

/// Returns whether a CA with this certificate (DER) may issue client certificates: its key usage, if present, includes certificate
/// signing, and its extended key usage, if present, includes client authentication or any purpose.
pub fn may_issue_for_clients(der: &[u8]) -> bool {
    let Some(certificate) = parse(der) else {
        return false;
    };
    let may_sign = match certificate.key_usage() {
        Ok(None) => true,
        Ok(Some(usage)) => usage.value.key_cert_sign(),
        Err(_) => false,
    };
    let is_for_clients = match certificate.extended_key_usage() {
        Ok(None) => true,
        Ok(Some(usage)) => usage.value.client_auth || usage.value.any,
        Err(_) => false,
    };
    may_sign && is_for_clients
}

fn organization_units(certificate: &X509Certificate<'_>) -> Vec<String> {
    certificate
        .subject()
        .iter_organizational_unit()
        .filter_map(text)
        .collect()
}

/// Returns whether programs may regard two names as equal (RFC 5280, section 7.1): regardless of string types, case, and spaces.
pub(super) fn is_same_name(one: &X509Name<'_>, other: &X509Name<'_>) -> bool {
    folded(one) == folded(other)
}

/// Returns the types and folded values of the attributes of each relative name.
fn folded(name: &X509Name<'_>) -> Vec<BTreeSet<(Vec<u8>, Vec<u8>)>> {
    let of_attribute = |attribute: &AttributeTypeAndValue<'_>| {
        let value = text(attribute).map_or(attribute.attr_value().data.to_vec(), |text| {
            let words: Vec<_> = text.split_whitespace().collect();
            words.join(" ").to_lowercase().into_bytes()
        });
        (attribute.attr_type().as_bytes().to_vec(), value)
    };
    let relative_names = name.iter_rdn();
    relative_names
        .map(|relative| relative.iter().map(of_attribute).collect())
        .collect()
}

/// Returns the text of an attribute of any string type, or `None` if it is not a string, or malformed.
pub(super) fn text(attribute: &AttributeTypeAndValue<'_>) -> Option<String> {
    let value = attribute.attr_value();
    if value.class() != Class::Universal {
        return None;
    }
    match u8::try_from(value.tag().0).ok()? {
        UTF8_STRING => std::str::from_utf8(value.data).ok().map(str::to_owned),
        NUMERIC_STRING | PRINTABLE_STRING | IA5_STRING | VISIBLE_STRING => value
            .data
            .is_ascii()
            .then(|| value.data.iter().copied().map(char::from).collect()),
        // Decoded as Latin-1, like other programs do.
        TELETEX_STRING => Some(value.data.iter().copied().map(char::from).collect()),
        BMP_STRING => characters::<2>(value.data),
        UNIVERSAL_STRING => characters::<4>(value.data),
        _ => None,
    }
}

/// Decodes a text of characters with `BYTES` bytes each, most significant byte first.
fn characters<const BYTES: usize>(data: &[u8]) -> Option<String> {
    let (characters, rest) = data.as_chunks::<BYTES>();
    if !rest.is_empty() {
        return None;
    }
    characters.iter().map(|bytes| character(bytes)).collect()
}

fn is_for_client_authentication(certificate: &X509Certificate<'_>) -> bool {
    certificate
        .extended_key_usage()
        .is_ok_and(|usage| usage.is_some_and(|usage| usage.value.client_auth))
}

/// Returns the length of a key in bits, or 0 if the algorithm is unknown.
pub(super) fn key_length_bits(key: &SubjectPublicKeyInfo<'_>) -> u32 {
    let algorithm = &key.algorithm.algorithm;
    if *algorithm == OID_SIG_ED25519 {
        return ED25519_BITS;
    }
    if *algorithm == OID_KEY_TYPE_EC_PUBLIC_KEY {
        return curve(key)
            .and_then(|curve| CURVE_BITS.iter().find(|(of_curve, _)| *of_curve == curve))
            .map_or(0, |(_, bits)| *bits);
    }
    rsa_bits(key).unwrap_or(0)
}

/// Returns the length of an RSA key in bits, or `None` for other algorithms.
pub(super) fn rsa_bits(key: &SubjectPublicKeyInfo<'_>) -> Option<u32> {
    RSA_KEYS
        .contains(&key.algorithm.algorithm)
        .then(|| modulus(&key.subject_public_key.data).map_or(0, bits))
}

/// Returns the modulus of an `RSAPublicKey` (RFC 8017, appendix A.1.1), without leading zeros.
pub(super) fn modulus(public_key: &[u8]) -> Option<&[u8]> {
    let (_, fields, _) = split_element(public_key)?;
    let (_, modulus, _) = split_element(fields)?;
    Some(without_leading_zeros(modulus))
}

/// Returns the length of an unsigned integer in bits.
pub(super) fn bits(integer: &[u8]) -> u32 {
    let significant = without_leading_zeros(integer);
    let Some(first) = significant.first() else {
        return 0;
    };
    u32::try_from(significant.len()).map_or(u32::MAX, |bytes| {
        bytes.saturating_mul(u8::BITS) - first.leading_zeros()
    })
}

fn without_leading_zeros(integer: &[u8]) -> &[u8] {
    let begin = integer.iter().position(|byte| *byte != 0);
    begin.and_then(|begin| integer.get(begin..)).unwrap_or(&[])
}

/// The algorithm identifiers of RSA keys.
const RSA_KEYS: [Oid<'_>; 2] = [OID_PKCS1_RSAENCRYPTION, OID_PKCS1_RSASSAPSS];

static CURVE_BITS: [(Oid<'_>, u32); 4] = [
    (OID_EC_P256, 256),
    (OID_NIST_EC_P384, 384),
    (OID_NIST_EC_P521, 521),
    (SECP256K1, 256),
];

const SECP256K1: Oid<'static> = oid!(1.3.132.0.10);
const ED25519_BITS: u32 = 256;

const SECONDS_A_DAY: i64 = 24 * 60 * 60;

/// The labels of certificates (RFC 7468, section 5).
const CERTIFICATE_LABELS: [&str; 2] = ["CERTIFICATE", "X509 CERTIFICATE"];

/// The labels of certificates that OpenSSL reads, but not every program. Go and rustls only know `CERTIFICATE`.
const SOME_PROGRAMS_READ: [&str; 2] = ["TRUSTED CERTIFICATE", "X509 CERTIFICATE"];

/// The labels of blocks that may precede the first certificate. OpenSSL fails at unknown labels.
const LABELS_BEFORE: [&str; 6] = [
    "EC PARAMETERS",
    "EC PRIVATE KEY",
    "ENCRYPTED PRIVATE KEY",
    "PRIVATE KEY",
    "PUBLIC KEY",
    "RSA PRIVATE KEY",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bit_length_ignores_leading_zeros() {
        for (modulus, expected) in [
            (&[0x00, 0x80, 0x00][..], 16),
            (&[0x01, 0x00], 9),
            (&[0x00, 0x00], 0),
            (&[], 0),
        ] {
            assert_eq!(bits(modulus), expected);
        }
    }
}
