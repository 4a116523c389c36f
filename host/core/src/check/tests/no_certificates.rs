//! An implementation of [`Certificates`] that rejects every certificate.

use std::{borrow::Cow, sync::Arc};

use crate::{
    Secret,
    certificate::{CertificateFacts, IssuanceFacts, IssuanceRules},
    ports::{
        CertificateIssuer, CertificateMembers, CertificateRefused, Certificates, CheckedMembers,
    },
};

/// Rejects every certificate.
pub(super) struct NoCertificates;

impl Certificates for NoCertificates {
    fn facts(&self, _: &str) -> Result<CertificateFacts, CertificateRefused> {
        Err(REFUSED)
    }

    fn issuance_facts(&self, _: &str) -> Result<IssuanceFacts, CertificateRefused> {
        Err(REFUSED)
    }

    fn check_members(
        &self,
        _: CertificateMembers<'_>,
    ) -> Result<CheckedMembers, CertificateRefused> {
        Err(REFUSED)
    }

    fn rsa_bits(&self, _: &str) -> Option<u32> {
        None
    }

    fn check_stored(
        &self,
        _: CertificateMembers<'_>,
    ) -> Result<Option<CertificateFacts>, CertificateRefused> {
        Err(REFUSED)
    }

    fn check_generated(
        &self,
        _: CertificateMembers<'_>,
        _: Option<&dyn CertificateIssuer>,
    ) -> Result<CertificateFacts, CertificateRefused> {
        Err(REFUSED)
    }

    fn issuer(
        &self,
        _: &str,
        _: &Secret,
        _: IssuanceRules,
    ) -> Result<Arc<dyn CertificateIssuer>, CertificateRefused> {
        Err(REFUSED)
    }

    fn first_certificate(&self, _: &str) -> Option<Vec<u8>> {
        None
    }
}

const REFUSED: CertificateRefused = CertificateRefused {
    member: "certificate",
    rule: Cow::Borrowed("is not a certificate"),
};
