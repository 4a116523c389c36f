//! Certificates that clients present, as far as who they are and what they are for. Whether they are to be trusted is told
//! elsewhere: where their chain is verified.

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

/// What a certificate, DER, says of the client that presents it; none when it can't be read.
#[must_use]
pub fn client_certificate_facts(der: &[u8]) -> Option<ClientCertificateFacts> {
    let certificate = facts::parse(der)?;
    Some(ClientCertificateFacts {
        organization_units: organization_units(&certificate),
        is_for_client_authentication: is_for_client_authentication(&certificate),
        expires_at: facts::facts(&certificate)?.expires_at,
    })
}

/// What a certificate, DER, says of the authority whose clients are to be trusted; none when it can't be read.
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

/// Returns whether an authority with this certificate, DER, may issue certificates for clients: its key usage, if it has
/// one, names the signing of certificates, and its extended key usage, if it has one, client authentication or any purpose.
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

/// The text of an attribute, in whichever type of string it is; `None` if it is no string, or malformed.
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
        // Read as Latin-1, as other readers do.
        TELETEX_STRING => Some(value.data.iter().copied().map(char::from).collect()),
        BMP_STRING => characters::<2>(value.data),
        UNIVERSAL_STRING => characters::<4>(value.data),
        _ => None,
    }
}

/// A text of characters of so many bytes each, most significant first.
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
