//! What is read of the files that TLS is configured with.

use std::path::Path;

use chrono::{DateTime, Utc};
use keywright_crypto::client_authority_facts;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use webpki::anchor_from_trusted_cert;

use super::client_verifier::ClientAuthority;
use crate::started::StartRefused;

/// The certificates of a file, PEM, in their order. There must be one.
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
            "{} holds no certificate",
            path.display()
        )));
    }
    Ok(certificates)
}

/// The private key of a file, PEM.
pub(super) fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, StartRefused> {
    PrivateKeyDer::from_pem_file(path)
        .map_err(|cause| StartRefused::file("reading the TLS private key", path, cause))
}

/// The authorities that clients' certificates must come from. One that is not valid now is told in the log, and trusted
/// when it is.
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
        return Err(refused("is not an authority's"));
    }
    if !facts.is_valid_at(now) {
        tracing::warn!(
            "certificate {number} of {} is valid from {} until {} alone: until it is, clients that come from it are refused",
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
