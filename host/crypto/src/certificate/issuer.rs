//! The issuer that a guest borrows for one call.

use std::sync::{
    OnceLock,
    atomic::{AtomicBool, Ordering},
};

use keywright_core::{
    certificate::{CertificateFacts, IssuanceRules},
    ports::{CertificateIssuer, SigningRefused},
};
use x509_parser::{certificate::X509Certificate, extensions::ParsedExtension};

use super::{
    der::{SEQUENCE, bit_string, element},
    facts, issuer_rules,
    signing_key::SigningKey,
};

/// A CA that signs once.
pub(super) struct Issuer {
    pub(super) certificate: Vec<u8>,
    pub(super) subject: Vec<u8>,
    pub(super) subject_key_identifier: Option<Vec<u8>>,
    pub(super) key: SigningKey,
    pub(super) rules: IssuanceRules,
    is_used: AtomicBool,
    signed: OnceLock<CertificateFacts>,
}

impl Issuer {
    pub(super) fn new(
        certificate: &X509Certificate<'_>,
        key: SigningKey,
        rules: IssuanceRules,
    ) -> Self {
        Self {
            certificate: certificate.as_raw().to_vec(),
            subject: certificate.subject().as_raw().to_vec(),
            subject_key_identifier: subject_key_identifier(certificate),
            key,
            rules,
            is_used: AtomicBool::new(false),
            signed: OnceLock::new(),
        }
    }
}

impl CertificateIssuer for Issuer {
    fn certificate(&self) -> &[u8] {
        &self.certificate
    }

    fn subject(&self) -> &[u8] {
        &self.subject
    }

    fn subject_key_identifier(&self) -> Option<&[u8]> {
        self.subject_key_identifier.as_deref()
    }

    fn signature_algorithm(&self) -> &[u8] {
        self.key.signature_algorithm()
    }

    fn sign_certificate(&self, tbs_certificate: &[u8]) -> Result<Vec<u8>, SigningRefused> {
        if self.is_used.swap(true, Ordering::Relaxed) {
            return Err(SigningRefused("an issuer signs once for each call"));
        }
        issuer_rules::check(self, tbs_certificate)?;
        let signature = self
            .key
            .sign(tbs_certificate)
            .ok_or(SigningRefused("the signature failed"))?;
        let parts = [
            tbs_certificate,
            self.signature_algorithm(),
            &bit_string(&signature),
        ];
        let certificate = element(SEQUENCE, &parts.concat());
        let facts = facts::parse(&certificate)
            .and_then(|parsed| facts::facts(&parsed))
            .ok_or(SigningRefused("the certificate can't be read"))?;
        self.signed.get_or_init(|| CertificateFacts {
            is_self_signed: false,
            ..facts
        });
        Ok(certificate)
    }

    fn signed(&self) -> Option<CertificateFacts> {
        self.signed.get().cloned()
    }
}

fn subject_key_identifier(certificate: &X509Certificate<'_>) -> Option<Vec<u8>> {
    certificate
        .extensions()
        .iter()
        .find_map(|extension| match extension.parsed_extension() {
            ParsedExtension::SubjectKeyIdentifier(identifier) => Some(identifier.0.to_vec()),
            _ => None,
        })
}
