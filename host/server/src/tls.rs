//! The server's own TLS.

use std::{path::Path, sync::Arc};

use keywright_core::certificate::ClientCertificateFacts;
use keywright_crypto::client_certificate_facts;
use rustls::{
    ServerConfig, ServerConnection,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};

use crate::{config::TlsConfig, started::StartRefused};

/// Reads the certificate chain and its key, and makes what the listener needs of them: TLS 1.2 and 1.3, with HTTP/2 and
/// HTTP/1.1 offered.
pub(crate) fn server_config(config: &TlsConfig) -> Result<Arc<ServerConfig>, StartRefused> {
    let chain = certificates(&config.certificate)?;
    let key = PrivateKeyDer::from_pem_file(&config.private_key).map_err(|cause| {
        StartRefused::file("reading the TLS private key", &config.private_key, cause)
    })?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut server = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|cause| StartRefused::while_doing("choosing TLS versions", cause))?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|cause| {
            StartRefused::file("using the TLS certificate", &config.certificate, cause)
        })?;
    server.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(server))
}

/// What the certificate says that the client of a session has presented, if it has. Of one that can't be read, nothing is
/// known: it identifies nobody.
pub(crate) fn client_certificate(
    session: &ServerConnection,
) -> Option<Arc<ClientCertificateFacts>> {
    let certificate = session.peer_certificates()?.first()?;
    Some(Arc::new(
        client_certificate_facts(certificate).unwrap_or_default(),
    ))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, StartRefused> {
    let refused = |cause| StartRefused::file("reading the TLS certificate", path, cause);
    let chain: Vec<_> = CertificateDer::pem_file_iter(path)
        .map_err(refused)?
        .collect::<Result<_, _>>()
        .map_err(refused)?;
    if chain.is_empty() {
        return Err(StartRefused::new(format!(
            "{} holds no certificate",
            path.display()
        )));
    }
    Ok(chain)
}
