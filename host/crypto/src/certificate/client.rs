//! Client certificates: their identity and their purpose. The verification of their chain is elsewhere.

use chrono::DateTime;
use keywright_core::certificate::{ClientAuthorityFacts, ClientCertificateFacts};
use x509_parser::{asn1_rs::Class, certificate::X509Certificate, x509::AttributeTypeAndValue};

use super::{
    der::{
        BMP_STRING, IA5_STRING, NUMERIC_STRING, PRINTABLE_STRING, TELETEX_STRING, UNIVERSAL_STRING,
        UTF8_STRING, VISIBLE_STRING, character,
    },
    facts,
};

/// Reads the facts in a client certificate, DER, or returns `None` if it is malformed.
#[must_use]
pub fn client_certificate_facts(der: &[u8]) -> Option<ClientCertificateFacts> {
    let certificate = facts::parse(der)?;
    Some(ClientCertificateFacts {
        organization_units: organization_units(&certificate),
        is_for_client_authentication: is_for_client_authentication(&certificate),
        expires_at: facts::facts(&certificate)?.expires_at,
    })
}

/// Reads the facts in the certificate, DER, of a trusted CA for clients, or returns `None` if it is malformed.
#[must_use]
pub fn client_authority_facts(der: &[u8]) -> Option<ClientAuthorityFacts> {
    let certificate = facts::parse(der)?;
    let facts = facts::facts(&certificate)?;
    let valid_from = certificate.validity().not_before.timestamp();
    Some(ClientAuthorityFacts {
        is_certificate_authority: facts.is_certificate_authority,
        valid_from: DateTime::from_timestamp(valid_from, 0)?,
        expires_at: facts.expires_at,
    })
}

/// Returns whether a CA with this certificate, DER, may issue client certificates: its key usage, if present, includes certificate
/// signing, and its extended key usage, if present, includes client authentication or any purpose.
#[must_use]
pub fn may_issue_for_clients(der: &[u8]) -> bool {
    let Some(certificate) = facts::parse(der) else {
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
