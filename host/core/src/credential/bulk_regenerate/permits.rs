//! What the caller of a bulk regeneration must be permitted: all of it, before anything is made.

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
    /// To write what is regenerated, by folded name.
    write: HashMap<String, Permit<'a>>,
}

impl<'a> Permits<'a> {
    /// Lets a caller regenerate all of these: write each of them, and read those that are authorities.
    ///
    /// # Errors
    /// [`Failure::WriteNotPermitted`], or [`Failure::NotFound`] for an authority.
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

    /// The permit to write one of them.
    pub(super) fn to_write(&self, name: &CredentialName) -> Result<&Permit<'a>, Failure> {
        self.write
            .get(name.lookup().folded())
            .ok_or(Failure::WriteNotPermitted)
    }

    /// Lets the caller use an authority, which need not be among them.
    ///
    /// # Errors
    /// [`Failure::IssuerNotFound`] when the caller may not read it.
    pub(super) fn to_sign_with(&self, name: &LookupName) -> Result<Permit<'a>, Failure> {
        self.rules
            .permit(self.caller, Operation::Read, name)
            .map_err(|_| Failure::IssuerNotFound)
    }

    /// Says in the trail which versions were written.
    pub(super) fn written(&self, versions: &[StoredVersion]) {
        for version in versions {
            if let Ok(permit) = self.to_write(&version.name) {
                permit.touched_version(version.credential_id, version.id);
            }
        }
    }
}
