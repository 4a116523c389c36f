//! Certificates that clients present, as far as who they are and what they are for. Whether they are to be trusted is told
//! elsewhere: where their chain is verified.

use chrono::DateTime;
use keywright_core::certificate::{ClientAuthorityFacts, ClientCertificateFacts};
use x509_parser::certificate::X509Certificate;

use super::facts;

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

/// Whether the extended key usage of an authority's certificate, DER, leaves it the certificates of clients: one that is
/// there names client authentication, or any purpose.
#[must_use]
pub fn may_issue_for_clients(der: &[u8]) -> bool {
    let Some(certificate) = facts::parse(der) else {
        return false;
    };
    match certificate.extended_key_usage() {
        Ok(None) => true,
        Ok(Some(usage)) => usage.value.client_auth || usage.value.any,
        Err(_) => false,
    }
}

fn organization_units(certificate: &X509Certificate<'_>) -> Vec<String> {
    certificate
        .subject()
        .iter_organizational_unit()
        .filter_map(|unit| unit.as_str().ok())
        .map(str::to_owned)
        .collect()
}

fn is_for_client_authentication(certificate: &X509Certificate<'_>) -> bool {
    certificate
        .extended_key_usage()
        .is_ok_and(|usage| usage.is_some_and(|usage| usage.value.client_auth))
}
