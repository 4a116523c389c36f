//! What is read of the files that TLS is configured with.

use std::path::Path;

use rustls::{
    RootCertStore,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};

use crate::started::StartRefused;

/// The certificates of a file, PEM, in their order. There must be one.
pub(super) fn certificates(
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

/// The authorities that clients' certificates must come from.
pub(super) fn client_authorities(path: &Path) -> Result<RootCertStore, StartRefused> {
    let mut authorities = RootCertStore::empty();
    for certificate in certificates("the client authorities", path)? {
        authorities
            .add(certificate)
            .map_err(|cause| StartRefused::file("using the client authorities", path, cause))?;
    }
    Ok(authorities)
}
