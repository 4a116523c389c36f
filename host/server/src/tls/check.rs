//! Checks the TLS files without a server.

use keywright_crypto::client_certificate_facts;
use rustls::{crypto::aws_lc_rs, sign::CertifiedKey};

use super::files;
use crate::{config::TlsConfig, config_check::Findings, process, started::StartRefused};

/// Reads the files as a server does, and reports all errors.
pub(crate) fn check(files: &TlsConfig, findings: &mut Findings) {
    let now = process::now();
    let chain = files::certificates("the TLS certificate", &files.certificate);
    let chain = findings.taken(CERTIFICATE, chain);
    let key = findings.taken(PRIVATE_KEY, files::private_key(&files.private_key));
    let facts = chain
        .as_ref()
        .and_then(|chain| client_certificate_facts(chain.first()?));
    if let Some(facts) = facts.filter(|facts| facts.expires_at < now) {
        findings.warning(CERTIFICATE, format!("expired on {}", facts.expires_at));
    }
    if let (Some(chain), Some(key)) = (chain, key) {
        let fitted = CertifiedKey::from_der(chain, key, &aws_lc_rs::default_provider());
        let fitted = fitted
            .map_err(|cause| StartRefused::while_doing("using it for the certificate", cause));
        findings.taken(PRIVATE_KEY, fitted);
    }
    let Some(file) = &files.client_authorities else {
        return;
    };
    let authorities = findings.taken(AUTHORITIES, files::client_authorities(file, now));
    for (number, authority) in (1..).zip(authorities.into_iter().flatten()) {
        if !authority.facts.is_valid_at(now) {
            let (from, until) = (authority.facts.valid_from, authority.facts.expires_at);
            let what = format!("certificate {number} is only valid from {from} until {until}");
            findings.warning(AUTHORITIES, what);
        }
    }
}

const AUTHORITIES: &str = "server.tls.client_authorities";
const CERTIFICATE: &str = "server.tls.certificate";
const PRIVATE_KEY: &str = "server.tls.private_key";
