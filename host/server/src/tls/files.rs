//! Reads the TLS files.

use std::path::Path;

use chrono::{DateTime, Utc};
use keywright_crypto::client_authority_facts;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use webpki::anchor_from_trusted_cert;

use super::client_verifier::ClientAuthority;
use crate::started::StartRefused;

/// Reads the certificates of a PEM file, in order. There must be at least one.
pub(crate) fn certificates(
    what: &str,
    path: &Path,
) -> Result<Vec<CertificateDer<'static>>, StartRefused> {
    let refused = |cause| StartRefused::file(&format!("reading {what}"), path, cause);
    let certificates: Vec<_> = CertificateDer::pem_file_iter(path)
        .map_err(refused)?
        .collect::<Result<_, _>>()
        .map_err(refused)?;
    if certificates.is_empty() {
        return Err(StartRefused::new(format!(
            "{} contains no certificate",
            path.display()
        )));
    }
    Ok(certificates)
}

/// Reads the private key of a PEM file.
pub(super) fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, StartRefused> {
    PrivateKeyDer::from_pem_file(path)
        .map_err(|cause| StartRefused::file("reading the TLS private key", path, cause))
}

/// Reads the CAs of client certificates. A CA outside its validity period is logged, and trusted as soon as it is
/// valid.
pub(super) fn client_authorities(
    path: &Path,
    now: DateTime<Utc>,
) -> Result<Vec<ClientAuthority>, StartRefused> {
    let certificates = certificates("the client authorities", path)?;
    let numbered = (1..).zip(&certificates);
    numbered
        .map(|(number, certificate)| client_authority(path, number, certificate, now))
        .collect()
}

fn client_authority(
    path: &Path,
    number: usize,
    certificate: &CertificateDer<'_>,
    now: DateTime<Utc>,
) -> Result<ClientAuthority, StartRefused> {
    let refused = |cause: &str| {
        let doing = "using the client authorities";
        StartRefused::file(doing, path, format!("certificate {number} {cause}"))
    };
    let facts = client_authority_facts(certificate).ok_or_else(|| refused("can't be read"))?;
    if !facts.is_certificate_authority {
        return Err(refused("is not a CA certificate"));
    }
    if !facts.is_valid_at(now) {
        tracing::warn!(
            "certificate {number} of {} is only valid from {} until {}: outside this period, clients with certificates from this CA are rejected",
            path.display(),
            facts.valid_from,
            facts.expires_at
        );
    }
    let anchor = anchor_from_trusted_cert(certificate)
        .map_err(|_| refused("can't be read"))?
        .to_owned();
    Ok(ClientAuthority { anchor, facts })
}
