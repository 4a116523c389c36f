//! Authorization: all decisions on whether a caller may perform an operation.
//!
//! A use case requests a [`Permit`] from [`Authorization`]. Each request, granted or not, is recorded in the caller's
//! [`Trail`], from which the audit trail is written.
//!
//! The types guarantee that requests decrypt and encrypt only through `VersionStore::open` and `VersionStore::seal`, which require a
//! permit for exactly this credential. `seal` requires a permit to write. `open` requires a permit to read, to write, or to delete with
//! decryption. Only the check and the rotation of keys, which act for no caller, need no permits.
//!
//! The types do not guarantee that a use case requests a permit before it lists, deletes, or reads unencrypted data, nor that it
//! requests the right operation. Tests cover this: `host/api/tests/service/routes.rs` checks that every route of the router
//! refuses a caller without permissions. The tests in `tests/api/authorization/` list the operation that each route requires,
//! and check that no other operation suffices.
//!
//! A caller who may not read a credential must not learn whether it exists. The result is [`UseCaseError::NotFound`] in either case,
//! and the work for the decision does not depend on whether the credential exists:
//! - For a request by name, only the stored name is read before the decision. The caller needs the permission for the name as in
//!   the request and for the stored name.
//! - For a request by id, one index lookup finds the name. For an unknown id, as many permissions are looked up as for any
//!   other id.
//! - An interpolation of a few names reads the latest versions, still encrypted, together with the stored names, if the caller
//!   may read the names as in the request.
//!
//! There are five exceptions:
//! - A missing write permission has its own result, [`UseCaseError::WriteNotPermitted`]. It is the same for names that exist and for
//!   names that don't, except that a name stored in another casing also needs the permission in that casing.
//! - Writes by the id of a certificate reveal whether the id exists. Ids can't be guessed.
//! - A bulk regeneration succeeds if its CA or input is absent, and so does an import of parameters if an input is absent. So a
//!   refusal reveals that the name is stored in another casing.
//! - A search takes longer the more names match, including names that the caller may not read. A search below a path considers
//!   only names from the first to the last that the caller's permissions cover.
//! - A caller that may read a CA gets the names of all credentials that this CA signed, because a CA can't be replaced safely
//!   without them.

mod caller;

use std::{collections::HashSet, iter, ops::ControlFlow, sync::Arc};

use uuid::Uuid;

use crate::{
    UseCaseError,
    credential::{CredentialName, LookupName, PathPrefix, StoredVersion},
    permission::{Actor, Operation, Operations, Permission, PermissionPath},
    ports::{
        CredentialKey, CredentialRepository, PermissionRepository, PermittedRead,
        PermittedVersions, VersionKey,
    },
};

pub(crate) use caller::EffectivePermissions;
pub use caller::{AccessedResource, Account, Authentication, Caller, Granted, Trail};
use caller::{PermissionsBeingRead, Position};

/// Decides which operations callers may perform.
#[derive(Clone)]
pub struct Authorization {
    permissions: Arc<dyn PermissionRepository>,
    is_enforced: bool,
}

impl Authorization {
    /// Creates an authorization with these permissions. If they are not enforced, every caller may do everything.
    pub fn new(permissions: Arc<dyn PermissionRepository>, is_enforced: bool) -> Self {
        Self {
            permissions,
            is_enforced,
        }
    }

    /// Returns whether permissions are enforced.
    pub fn is_enforced(&self) -> bool {
        self.is_enforced
    }

    /// Permits an operation on a credential, which need not exist. The caller needs the permission for the name as in the request
    /// and, if the credential is stored in another casing, also for the stored name.
    ///
    /// # Errors
    /// [`UseCaseError::WriteNotPermitted`] if the caller may not write, [`UseCaseError::NotFound`] for all other operations.
    pub async fn permit<'a>(
        &self,
        caller: &'a Caller,
        operation: Operation,
        name: &LookupName,
    ) -> Result<Permit<'a>, UseCaseError> {
        let requested = Permit::request(caller, operation, name);
        if !self.is_enforced {
            return Ok(requested.by(&EffectivePermissions::everything()));
        }
        let covering = PermissionPath::covering(name.requested());
        let (permissions, stored) = self
            .permissions
            .of_actor_on_name(caller.actor(), &covering, name)
            .await?;
        let effective = EffectivePermissions::of(permissions);
        let permit = requested.granted_if_allowed(&effective, name.requested())?;
        let Some(stored) = stored.filter(|stored| stored.as_str() != name.requested()) else {
            return Ok(permit);
        };
        let covering = PermissionPath::covering(stored.as_str());
        let on_stored = self.permissions_on(caller.actor(), &covering).await?;
        let permit = permit.granted_if_allowed(&effective.and(&on_stored), stored.as_str())?;
        Ok(permit.also_on(&stored))
    }

    /// Permits a caller to use a CA.
    ///
    /// # Errors
    /// [`UseCaseError::IssuerNotFound`] if the caller may not read it.
    pub(crate) async fn permit_issuer<'a>(
        &self,
        caller: &'a Caller,
        name: &LookupName,
    ) -> Result<Permit<'a>, UseCaseError> {
        let permit = self.permit(caller, Operation::Read, name);
        permit.await.map_err(|failure| match failure {
            UseCaseError::NotFound => UseCaseError::IssuerNotFound,
            failure => failure,
        })
    }

    /// Permits an operation on the credential with this id. `stored` is its name, or `None` if the id is unknown. Refusing an
    /// unknown id takes as much work as refusing a credential that the caller may not access.
    ///
    /// # Errors
    /// [`UseCaseError::NotFound`] for `None`; otherwise as [`Authorization::permit`].
    pub async fn permit_stored<'a>(
        &self,
        caller: &'a Caller,
        operation: Operation,
        id: Uuid,
        stored: Option<&CredentialName>,
    ) -> Result<Permit<'a>, UseCaseError> {
        if let Some(name) = stored {
            return self.permit_exactly(caller, operation, &name.lookup()).await;
        }
        Err(self.refuse_absent(caller, operation, id).await)
    }

    /// Permits an operation on a name, or on the permissions of a path, in exactly this casing.
    pub(crate) async fn permit_exactly<'a>(
        &self,
        caller: &'a Caller,
        operation: Operation,
        name: &LookupName,
    ) -> Result<Permit<'a>, UseCaseError> {
        let requested = Permit::request(caller, operation, name);
        let covering = PermissionPath::covering(name.requested());
        let effective = self.permissions_on(caller.actor(), &covering).await?;
        requested.granted_if_allowed(&effective, name.requested())
    }

    /// Refuses an unknown id of a credential or permission, after the same work as for any other refusal. Recording the request
    /// in the trail is part of that work.
    pub(crate) async fn refuse_absent(
        &self,
        caller: &Caller,
        operation: Operation,
        id: Uuid,
    ) -> UseCaseError {
        caller.trail().push(AccessedResource {
            resource_id: Some(id),
            ..AccessedResource::new(operation, "")
        });
        let name = LookupName::new(NAME_FOR_UNKNOWN_IDS);
        let covering = PermissionPath::covering(name.requested());
        let permissions = self.permissions_on(caller.actor(), &covering).await;
        permissions.err().unwrap_or(UseCaseError::NotFound)
    }

    /// Like [`Authorization::permit`] for [`Operation::Read`], and also returns versions of the credential, possibly none, still
    /// encrypted.
    ///
    /// # Errors
    /// [`UseCaseError::NotFound`] if the caller may not read the credential, or it does not exist.
    pub(crate) async fn permit_read<'a>(
        &self,
        caller: &'a Caller,
        repository: &dyn CredentialRepository,
        name: &LookupName,
        versions: VersionKey,
    ) -> Result<(Permit<'a>, Vec<StoredVersion>), UseCaseError> {
        let requested = Permit::request(caller, Operation::Read, name);
        if !self.is_enforced {
            let stored = versions_of(repository, name, versions).await?;
            return Ok((requested.by(&EffectivePermissions::everything()), stored));
        }
        let (effective, found) = self
            .read_if_permitted(caller, repository, name, versions)
            .await?;
        let permit = requested.granted_if_allowed(&effective, name.requested())?;
        if !found.versions.is_empty() {
            return Ok((permit, found.versions));
        }
        // Permissions are looked up even if there is no stored name, so that both refusals take the same time.
        let stored = found.stored_name.as_ref();
        let stored_name = stored.map_or(name.requested(), |stored| stored.as_str());
        let covering = PermissionPath::covering(stored_name);
        let on_stored = self.permissions_on(caller.actor(), &covering).await?;
        if stored.is_none() {
            return Err(UseCaseError::NotFound);
        }
        let permit = permit.granted_if_allowed(&effective.and(&on_stored), stored_name)?;
        Ok((permit, versions_of(repository, name, versions).await?))
    }

    /// Refuses to read a version with an unknown id, after the same work as for a version that the caller may not read.
    pub(crate) async fn refuse_absent_version(
        &self,
        caller: &Caller,
        repository: &dyn CredentialRepository,
        id: Uuid,
    ) -> UseCaseError {
        caller.trail().push(AccessedResource {
            version_id: Some(id),
            ..AccessedResource::new(Operation::Read, "")
        });
        let name = LookupName::new(NAME_FOR_UNKNOWN_IDS);
        let read = self.read_if_permitted(caller, repository, &name, VersionKey::Id(id));
        read.await.err().unwrap_or(UseCaseError::NotFound)
    }

    /// Reads the permissions of a caller that cover a name, and the versions if these permissions allow it.
    async fn read_if_permitted(
        &self,
        caller: &Caller,
        repository: &dyn CredentialRepository,
        name: &LookupName,
        versions: VersionKey,
    ) -> Result<(EffectivePermissions, PermittedVersions), UseCaseError> {
        let covering = PermissionPath::covering(name.requested());
        let read = PermittedRead {
            actor: caller.actor(),
            paths: &covering,
            name,
            versions,
        };
        let mut effective = EffectivePermissions::none();
        let mut permits = |permissions| {
            effective = EffectivePermissions::of(permissions);
            effective.allow(Operation::Read, name.requested())
        };
        let found = repository.read_permitted(read, &mut permits).await?;
        Ok((effective, found))
    }

    /// Returns whether an actor, which need not be the caller, may perform an operation on the credential with this name, or on
    /// its permissions, in exactly this casing.
    pub(crate) async fn may(
        &self,
        actor: &Actor,
        operation: Operation,
        name: &str,
    ) -> Result<bool, UseCaseError> {
        let covering = PermissionPath::covering(name);
        let effective = self.permissions_on(actor, &covering).await?;
        Ok(effective.allow(operation, name))
    }

    /// Returns all permissions of a caller to read or write, for requests about many credentials. Their memory counts as memory of
    /// the response.
    pub(crate) async fn permissions_of(
        &self,
        caller: &Caller,
    ) -> Result<EffectivePermissions, UseCaseError> {
        self.permissions_of_kind(caller, |_| true).await
    }

    /// Like [`Authorization::permissions_of`], but without permissions that apply to no name below this path. Others can grant the
    /// caller so many permissions elsewhere that there is no memory for all.
    pub(crate) async fn permissions_below(
        &self,
        caller: &Caller,
        path: &PathPrefix,
    ) -> Result<EffectivePermissions, UseCaseError> {
        self.permissions_of_kind(caller, |permission| permission.path.applies_below(path))
            .await
    }

    async fn permissions_of_kind(
        &self,
        caller: &Caller,
        mut is_kept: impl FnMut(&Permission) -> bool + Send,
    ) -> Result<EffectivePermissions, UseCaseError> {
        if !self.is_enforced {
            return Ok(EffectivePermissions::everything());
        }
        let mut read = PermissionsBeingRead::default();
        let mut refused = None;
        let mut receive = |permission: Permission| {
            let used = [Operation::Read, Operation::Write].into_iter();
            let used = used.filter(|operation| permission.operations.contain(*operation));
            if let Some(operations) = Operations::of(used)
                && is_kept(&permission)
            {
                let used = Permission {
                    operations,
                    ..permission
                };
                refused = caller.reserve_permissions(read.add(used)).err();
            }
            if refused.is_some() {
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        };
        let repository = &self.permissions;
        repository.of_actor(caller.actor(), &mut receive).await?;
        refused.map_or(Ok(read.finish()), Err)
    }

    /// Returns the permissions of a caller that cover any of these names. Returns all permissions of the caller only if more than
    /// [`PATHS_MAX`] paths cover the names: others can grant the caller so many that reading them fails.
    pub(crate) async fn permissions_covering_all(
        &self,
        caller: &Caller,
        names: &[LookupName],
    ) -> Result<EffectivePermissions, UseCaseError> {
        let mut covering = HashSet::new();
        for name in names {
            covering.extend(PermissionPath::covering(name.requested()));
            if covering.len() > PATHS_MAX {
                return self.permissions_of(caller).await;
            }
        }
        let covering = Vec::from_iter(covering);
        let mut effective = EffectivePermissions::none();
        for paths in covering.chunks(PATHS_AT_ONCE) {
            effective = effective.and(&self.permissions_on(caller.actor(), paths).await?);
        }
        Ok(effective)
    }

    /// Checks that the caller still has the permissions of these permits, on the names as requested and as stored. Calls of plugins
    /// and checks of certificates may have waited long.
    ///
    /// # Errors
    /// As for the first permit that would not be granted.
    pub(crate) async fn confirm<'p>(
        &self,
        caller: &Caller,
        permits: impl IntoIterator<Item = &'p Permit<'p>>,
    ) -> Result<(), UseCaseError> {
        let permits = Vec::from_iter(permits);
        let names = permits.iter().flat_map(|permit| permit.names());
        let names: Vec<_> = names.cloned().collect();
        let permissions = self.permissions_covering_all(caller, &names).await?;
        permits.iter().try_for_each(|permit| {
            let mut names = permit.names();
            names.try_for_each(|name| permit.check(&permissions, name.requested()))
        })
    }

    async fn permissions_on(
        &self,
        actor: &Actor,
        paths: &[PermissionPath],
    ) -> Result<EffectivePermissions, UseCaseError> {
        if !self.is_enforced {
            return Ok(EffectivePermissions::everything());
        }
        let permissions = self.permissions.of_actor_on(actor, paths).await?;
        Ok(EffectivePermissions::of(permissions))
    }
}

/// Proof that a caller may perform one operation on one credential, or on its permissions. Only this module creates permits.
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
    fn request(caller: &'a Caller, operation: Operation, name: &LookupName) -> Self {
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
    fn granted_if_allowed(
        self,
        permissions: &EffectivePermissions,
        name: &str,
    ) -> Result<Self, UseCaseError> {
        self.check(permissions, name)?;
        Ok(self.by(permissions))
    }

    /// Checks that these permissions allow the operation on a name, unless the caller needs no permission on it.
    fn check(&self, permissions: &EffectivePermissions, name: &str) -> Result<(), UseCaseError> {
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
    fn by(self, permissions: &EffectivePermissions) -> Self {
        Self {
            permissions: permissions.clone(),
            ..self
        }
    }

    /// Returns the permit with the stored name, in another casing, on which the operation was also allowed.
    fn also_on(self, stored: &CredentialName) -> Self {
        Self {
            stored_name: Some(stored.lookup()),
            ..self
        }
    }

    /// Returns the casings of the name on which the operation was allowed.
    fn names(&self) -> impl Iterator<Item = &LookupName> {
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

    /// Returns the permissions with which it was granted.
    pub(crate) fn permissions(&self) -> &EffectivePermissions {
        &self.permissions
    }
}

impl EffectivePermissions {
    /// Like [`Authorization::permit`], but with these permissions, which must be the caller's.
    pub(crate) fn permit<'a>(
        &self,
        caller: &'a Caller,
        operation: Operation,
        name: &LookupName,
    ) -> Result<Permit<'a>, UseCaseError> {
        Permit::request(caller, operation, name).granted_if_allowed(self, name.requested())
    }
}

/// Returns versions of a credential that the caller may read.
async fn versions_of(
    repository: &dyn CredentialRepository,
    name: &LookupName,
    versions: VersionKey,
) -> Result<Vec<StoredVersion>, UseCaseError> {
    Ok(match versions {
        VersionKey::Id(id) => repository.version_by_id(id).await?.into_iter().collect(),
        VersionKey::Selected(selection) => {
            let key = CredentialKey::Name(name);
            repository.versions_of(key, selection).await?
        }
    })
}

/// The maximum number of paths for which permissions are looked up one by one.
const PATHS_MAX: usize = 4_096;

/// The maximum number of paths in one query.
const PATHS_AT_ONCE: usize = 64;

/// The name looked up for an unknown id. No permission can cover it, because paths can't contain spaces. It has as many enclosing
/// paths as names such as `/deployment/job/password`.
const NAME_FOR_UNKNOWN_IDS: &str = "/ / / ";

#[cfg(test)]
mod tests;
