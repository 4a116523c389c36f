//! Proof of authorization.

use std::iter;

use uuid::Uuid;

use super::{
    caller::{AccessedResource, Caller, Position, Trail},
    effective_permissions::EffectivePermissions,
};
use crate::{
    UseCaseError,
    credential::{CredentialName, LookupName},
    permission::{Operation, Permission},
};

/// Proof that a caller may perform one operation on one credential, or on its permissions. Only `authorization` creates
/// permits, and only returns them after the permissions of the caller have allowed the operation.
#[derive(Debug)]
pub struct Permit<'a> {
    trail: &'a Trail,
    position: Position,
    operation: Operation,
    name: LookupName,
    /// The stored name, if its casing differs and the operation was also allowed on it.
    stored_name: Option<LookupName>,
    /// The permissions that allow the operation. They also apply to the name in its stored casing.
    permissions: EffectivePermissions,
    /// Whether versions may be decrypted before they are deleted.
    may_open_deleted: bool,
}

impl<'a> Permit<'a> {
    /// Records the requested operation in the trail. The result permits nothing until it is granted.
    pub(super) fn request(caller: &'a Caller, operation: Operation, name: &LookupName) -> Self {
        Self::on(
            caller.trail(),
            operation,
            name,
            EffectivePermissions::none(),
        )
    }

    /// Returns the permit if these permissions allow its operation on a name. All permits are granted here or by [`Permit::by`].
    ///
    /// # Errors
    /// [`UseCaseError::WriteNotPermitted`] if the caller may not write, [`UseCaseError::NotFound`] for all other operations.
    pub(super) fn granted_if_allowed(
        self,
        permissions: &EffectivePermissions,
        name: &str,
    ) -> Result<Self, UseCaseError> {
        self.check(permissions, name)?;
        Ok(self.by(permissions))
    }

    /// Checks that these permissions allow the operation on a name, unless the caller needs no permission on it.
    pub(super) fn check(
        &self,
        permissions: &EffectivePermissions,
        name: &str,
    ) -> Result<(), UseCaseError> {
        if self.permissions.allow_everything() || permissions.allow(self.operation, name) {
            return Ok(());
        }
        Err(match self.operation {
            Operation::Write => UseCaseError::WriteNotPermitted,
            Operation::Read | Operation::Delete | Operation::ReadAcl | Operation::WriteAcl => {
                UseCaseError::NotFound
            }
        })
    }

    /// Returns the permit with these permissions, which allow the operation.
    pub(super) fn by(self, permissions: &EffectivePermissions) -> Self {
        Self {
            permissions: permissions.clone(),
            ..self
        }
    }

    /// Returns the permit with the stored name, in another casing, on which the operation was also allowed.
    pub(super) fn also_on(self, stored: &CredentialName) -> Self {
        Self {
            stored_name: Some(stored.lookup()),
            ..self
        }
    }

    /// Returns the casings of the name on which the operation was allowed.
    pub(super) fn names(&self) -> impl Iterator<Item = &LookupName> {
        iter::once(&self.name).chain(&self.stored_name)
    }

    /// Returns the name of the credential, as requested.
    pub(crate) fn name(&self) -> &LookupName {
        &self.name
    }

    /// Returns whether versions of this credential may be decrypted: the permit must be for this credential and for reading,
    /// for writing, or for deleting with [`Permit::with_decryption`].
    pub(crate) fn opens(&self, name: &CredentialName) -> bool {
        let may_open = match self.operation {
            Operation::Read | Operation::Write => true,
            Operation::Delete => self.may_open_deleted,
            Operation::ReadAcl | Operation::WriteAcl => false,
        };
        may_open && self.covers(name)
    }

    /// Returns whether a version of this credential may be encrypted: the permit must be for writing this credential.
    pub(crate) fn seals(&self, name: &CredentialName) -> bool {
        self.operation == Operation::Write && self.covers(name)
    }

    /// Returns the permit to delete with decryption allowed, because the response contains the deleted version and dependent
    /// versions are regenerated. Has no effect on permits for other operations.
    pub(crate) fn with_decryption(self) -> Self {
        Self {
            may_open_deleted: true,
            ..self
        }
    }

    /// Returns a permit on another credential, which the server itself must read or write to perform the permitted
    /// operation. The caller needs no permission on it. Review every call.
    pub(crate) fn extended_to(&self, operation: Operation, name: &LookupName) -> Self {
        Self::on(
            self.trail,
            operation,
            name,
            EffectivePermissions::everything(),
        )
    }

    pub(crate) fn record_version(&self, credential_id: Uuid, version_id: Uuid) {
        self.trail
            .identify(self.position, credential_id, Some(version_id));
    }

    /// Records in the trail that the response contains the value of an existing version although this permit is not for
    /// reading.
    pub(crate) fn record_disclosure(&self, credential_id: Uuid, version_id: Uuid) {
        self.trail
            .disclose(self.position, credential_id, version_id);
    }

    /// Records the changed permission in the trail, with its actor and operations.
    pub(crate) fn record_permission(&self, permission: &Permission) {
        self.trail.identify_permission(self.position, permission);
    }

    /// Records the id of the credential or the permission in the trail.
    pub(crate) fn record_resource(&self, resource_id: Uuid) {
        self.trail.identify(self.position, resource_id, None);
    }

    fn on(
        trail: &'a Trail,
        operation: Operation,
        name: &LookupName,
        permissions: EffectivePermissions,
    ) -> Self {
        let position = trail.push(AccessedResource::new(operation, name.requested()));
        Self {
            trail,
            position,
            operation,
            name: name.clone(),
            stored_name: None,
            permissions,
            may_open_deleted: false,
        }
    }

    /// Returns whether the permit is for this credential, and the permissions also allow the operation on this casing of its
    /// name. Check everything that was read by the permitted name: another writer may have recreated the credential in another
    /// casing.
    pub(crate) fn covers(&self, name: &CredentialName) -> bool {
        self.name.is(name) && self.permissions.allow(self.operation, name.as_str())
    }
}

impl EffectivePermissions {
    /// Like [`super::Authorization::permit`], but with these permissions, which must be the caller's.
    pub(crate) fn permit<'a>(
        &self,
        caller: &'a Caller,
        operation: Operation,
        name: &LookupName,
    ) -> Result<Permit<'a>, UseCaseError> {
        Permit::request(caller, operation, name).granted_if_allowed(self, name.requested())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        authorization::Authentication,
        permission::{Actor, Operations, PermissionPath},
    };

    fn caller() -> Caller {
        let subject = "someone".to_owned();
        let actor = Actor::parse(&subject).unwrap();
        Caller::new(actor, Authentication::Token { subject })
    }

    #[test]
    fn the_operation_decides_whether_a_permit_opens_and_seals() {
        let caller = caller();
        let name = CredentialName::parse("/a").unwrap();
        for (operation, opens, seals) in [
            (Operation::Read, true, false),
            (Operation::Write, true, true),
            (Operation::Delete, false, false),
            (Operation::ReadAcl, false, false),
            (Operation::WriteAcl, false, false),
        ] {
            let permit = Permit::request(&caller, operation, &name.lookup());
            assert!(!permit.opens(&name) && !permit.seals(&name), "{operation}");
            let permit = permit.by(&EffectivePermissions::everything());
            assert_eq!(permit.opens(&name), opens, "{operation}");
            assert_eq!(permit.seals(&name), seals, "{operation}");
            let permit = permit.with_decryption();
            let opens = opens || operation == Operation::Delete;
            assert_eq!(permit.opens(&name), opens, "{operation}");
            assert_eq!(permit.seals(&name), seals, "{operation}");
        }
    }

    #[test]
    fn a_permit_covers_one_credential_in_any_casing() {
        let caller = caller();
        let name = |text| CredentialName::parse(text).unwrap();
        let permit = Permit::request(&caller, Operation::Write, &name("/a").lookup())
            .by(&EffectivePermissions::everything());
        assert!(permit.opens(&name("/A")) && permit.seals(&name("/A")));
        assert!(!permit.opens(&name("/a/b")) && !permit.seals(&name("/a/b")));
        let extended = permit.extended_to(Operation::Read, &name("/b").lookup());
        assert!(extended.opens(&name("/b")) && !extended.seals(&name("/b")));
        assert!(!extended.opens(&name("/a")));
    }

    #[test]
    fn a_permit_opens_only_casings_that_the_permissions_allow() {
        let caller = caller();
        let name = |text| CredentialName::parse(text).unwrap();
        for (path, opens) in [
            ("/A/*", false),
            ("/a/*", true),
            ("/*", true),
            ("/a/b", true),
        ] {
            let permissions = EffectivePermissions::of(vec![Permission {
                id: Uuid::nil(),
                path: PermissionPath::parse(path).unwrap(),
                actor: caller.actor().clone(),
                operations: Operations::of([Operation::Read]).unwrap(),
            }]);
            let permit =
                Permit::request(&caller, Operation::Read, &name("/A/b").lookup()).by(&permissions);
            assert_eq!(permit.opens(&name("/a/b")), opens, "{path}");
        }
    }
}
