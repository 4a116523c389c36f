//! Authorizing a bulk regeneration completely before it generates the first value.

use std::collections::HashMap;

use super::levels::Signed;
use crate::{
    Failure,
    authorization::{Caller, Permit, Rules},
    credential::{CredentialName, LookupName, StoredVersion},
    permission::Operation,
};

/// The permits for one bulk regeneration.
pub(super) struct Permits<'a> {
    caller: &'a Caller,
    rules: &'a Rules,
    /// The permits to write the regenerated credentials, by folded name.
    write: HashMap<String, Permit<'a>>,
}

impl<'a> Permits<'a> {
    /// Permits a caller to regenerate all of these: to write each credential, and to read the CAs among them.
    ///
    /// # Errors
    /// [`Failure::WriteNotPermitted`], or [`Failure::NotFound`] for a CA.
    pub(super) fn ask(
        caller: &'a Caller,
        rules: &'a Rules,
        all: &[impl Signed],
    ) -> Result<Self, Failure> {
        let mut write = HashMap::new();
        for signed in all {
            let name = signed.name();
            let permit = rules.permit(caller, Operation::Write, &name)?;
            if signed.is_authority() {
                rules.permit(caller, Operation::Read, &name)?;
            }
            write.insert(name.folded().to_owned(), permit);
        }
        Ok(Self {
            caller,
            rules,
            write,
        })
    }

    /// Returns the permit to write one of the credentials.
    pub(super) fn to_write(&self, name: &CredentialName) -> Result<&Permit<'a>, Failure> {
        self.write
            .get(name.lookup().folded())
            .ok_or(Failure::WriteNotPermitted)
    }

    /// Permits the caller to use a CA, which need not be one of the credentials.
    ///
    /// # Errors
    /// [`Failure::IssuerNotFound`] if the caller may not read it.
    pub(super) fn to_sign_with(&self, name: &LookupName) -> Result<Permit<'a>, Failure> {
        self.rules
            .permit(self.caller, Operation::Read, name)
            .map_err(|_| Failure::IssuerNotFound)
    }

    /// Records the written versions in the trail.
    pub(super) fn written(&self, versions: &[StoredVersion]) {
        for version in versions {
            if let Ok(permit) = self.to_write(&version.name) {
                permit.touched_version(version.credential_id, version.id);
            }
        }
    }
}
