//! `keywright:signing/issuer`: a CA that a guest borrows for one call.
//!
//! The interface is the same in all versions, so it is defined once and added under the name of each version.

use std::sync::Arc;

use keywright_core::ports::CertificateIssuer;
use wasmtime::{
    StoreContextMut,
    component::{Linker, Resource, ResourceType},
};

use super::HostRefusal;
use crate::{bindings::keywright::signing::issuer::SigningError, call::CallState};

/// The maximum size of a certificate body to be signed, in bytes.
pub(crate) const TBS_CERTIFICATE_BYTES_MAX: usize = 64 * 1024;

/// The handle of the call's issuer.
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

    /// Returns the handle that the guest borrows.
    pub(crate) fn handle() -> Resource<Self> {
        Resource::new_borrow(ISSUER_HANDLE)
    }
}

/// Defines the interface under a name.
///
/// # Errors
/// If the name is already defined.
pub(crate) fn add_to_linker(linker: &mut Linker<CallState>, name: &str) -> wasmtime::Result<()> {
    let mut interface = linker.instance(name)?;
    // Guests only borrow handles, so there is nothing to drop.
    interface.resource("issuer", ResourceType::host::<IssuerLease>(), |_, _| Ok(()))?;
    interface.func_wrap(
        "[method]issuer.certificate",
        |mut store: Call<'_>, (handle,)| Ok((store.data_mut().certificate(&handle)?,)),
    )?;
    interface.func_wrap(
        "[method]issuer.subject",
        |mut store: Call<'_>, (handle,)| Ok((store.data_mut().subject(&handle)?,)),
    )?;
    interface.func_wrap(
        "[method]issuer.subject-key-identifier",
        |mut store: Call<'_>, (handle,)| Ok((store.data_mut().subject_key_identifier(&handle)?,)),
    )?;
    interface.func_wrap(
        "[method]issuer.signature-algorithm",
        |mut store: Call<'_>, (handle,)| Ok((store.data_mut().signature_algorithm(&handle)?,)),
    )?;
    interface.func_wrap(
        "[method]issuer.sign-certificate",
        |mut store: Call<'_>, (handle, tbs_certificate): (Handle, Vec<u8>)| {
            Ok((store
                .data_mut()
                .sign_certificate(&handle, &tbs_certificate)?,))
        },
    )
}

type Call<'a> = StoreContextMut<'a, CallState>;
type Handle = Resource<IssuerLease>;

impl CallState {
    fn certificate(&mut self, handle: &Handle) -> Result<Vec<u8>, HostRefusal> {
        Ok(self.lease(handle)?.issuer.certificate().to_vec())
    }

    fn subject(&mut self, handle: &Handle) -> Result<Vec<u8>, HostRefusal> {
        Ok(self.lease(handle)?.issuer.subject().to_vec())
    }

    fn subject_key_identifier(&mut self, handle: &Handle) -> Result<Option<Vec<u8>>, HostRefusal> {
        let identifier = self.lease(handle)?.issuer.subject_key_identifier();
        Ok(identifier.map(<[u8]>::to_vec))
    }

    fn signature_algorithm(&mut self, handle: &Handle) -> Result<Vec<u8>, HostRefusal> {
        Ok(self.lease(handle)?.issuer.signature_algorithm().to_vec())
    }

    fn sign_certificate(
        &mut self,
        handle: &Handle,
        tbs_certificate: &[u8],
    ) -> Result<Result<Vec<u8>, SigningError>, HostRefusal> {
        let lease = self.lease(handle)?;
        let refused = |rule: &str| Ok(Err(SigningError::Refused(rule.to_owned())));
        if std::mem::replace(&mut lease.is_used, true) {
            return refused("an issuer signs once in a call");
        }
        if tbs_certificate.len() > TBS_CERTIFICATE_BYTES_MAX {
            return refused("the certificate body is larger than 64 KiB");
        }
        match lease.issuer.sign_certificate(tbs_certificate) {
            Ok(certificate) => Ok(Ok(certificate)),
            Err(refusal) => refused(refusal.0),
        }
    }

    fn lease(&mut self, handle: &Handle) -> Result<&mut IssuerLease, HostRefusal> {
        self.issuer
            .as_mut()
            .filter(|_| handle.rep() == ISSUER_HANDLE)
            .ok_or(HostRefusal::IssuerNotLent)
    }
}
