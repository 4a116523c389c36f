//! `keywright:signing/issuer`: a certificate authority, lent to a guest for one call.

use std::sync::Arc;

use keywright_core::ports::CertificateIssuer;
use wasmtime::component::Resource;

use super::HostRefusal;
use crate::{
    bindings::keywright::signing::issuer::{Host, HostIssuer, SigningError},
    call::CallState,
};

/// The largest certificate body that is signed, in bytes.
pub(crate) const TBS_CERTIFICATE_BYTES_MAX: usize = 64 * 1024;

/// The handle of the one issuer that a call may have.
const ISSUER_HANDLE: u32 = 1;

/// An issuer, and whether it has signed already.
#[expect(
    unreachable_pub,
    reason = "the generated bindings export it again, within the crate"
)]
pub struct IssuerLease {
    issuer: Arc<dyn CertificateIssuer>,
    is_used: bool,
}

impl IssuerLease {
    pub(crate) fn new(issuer: Arc<dyn CertificateIssuer>) -> Self {
        Self {
            issuer,
            is_used: false,
        }
    }

    /// The handle under which the guest borrows it.
    pub(crate) fn handle() -> Resource<Self> {
        Resource::new_borrow(ISSUER_HANDLE)
    }
}

impl Host for CallState {}

impl HostIssuer for CallState {
    fn certificate(&mut self, handle: Resource<IssuerLease>) -> wasmtime::Result<Vec<u8>> {
        Ok(self.lease(&handle)?.issuer.certificate().to_vec())
    }

    fn subject(&mut self, handle: Resource<IssuerLease>) -> wasmtime::Result<Vec<u8>> {
        Ok(self.lease(&handle)?.issuer.subject().to_vec())
    }

    fn subject_key_identifier(
        &mut self,
        handle: Resource<IssuerLease>,
    ) -> wasmtime::Result<Option<Vec<u8>>> {
        Ok(self
            .lease(&handle)?
            .issuer
            .subject_key_identifier()
            .map(<[u8]>::to_vec))
    }

    fn signature_algorithm(&mut self, handle: Resource<IssuerLease>) -> wasmtime::Result<Vec<u8>> {
        Ok(self.lease(&handle)?.issuer.signature_algorithm().to_vec())
    }

    fn sign_certificate(
        &mut self,
        handle: Resource<IssuerLease>,
        tbs_certificate: Vec<u8>,
    ) -> wasmtime::Result<Result<Vec<u8>, SigningError>> {
        let lease = self.lease(&handle)?;
        let refused = |rule: &str| Ok(Err(SigningError::Refused(rule.to_owned())));
        if std::mem::replace(&mut lease.is_used, true) {
            return refused("an issuer signs once in a call");
        }
        if tbs_certificate.len() > TBS_CERTIFICATE_BYTES_MAX {
            return refused("the certificate body is larger than 64 KiB");
        }
        match lease.issuer.sign_certificate(&tbs_certificate) {
            Ok(certificate) => Ok(Ok(certificate)),
            Err(refusal) => refused(refusal.0),
        }
    }

    fn drop(&mut self, _handle: Resource<IssuerLease>) -> wasmtime::Result<()> {
        Ok(())
    }
}

impl CallState {
    fn lease(&mut self, handle: &Resource<IssuerLease>) -> Result<&mut IssuerLease, HostRefusal> {
        self.issuer
            .as_mut()
            .filter(|_| handle.rep() == ISSUER_HANDLE)
            .ok_or(HostRefusal::IssuerNotLent)
    }
}
