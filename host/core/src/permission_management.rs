//! Managing permissions: reading, explaining, adding, changing and deleting them.
//!
//! A caller that may not read or change the permissions on a path gets the same error as for permissions that do not exist.
//! Adding has an error of its own, which reveals nothing: the path need not exist. [`crate::permission`] defines the types, and
//! [`crate::authorization`] evaluates permissions.

use std::sync::Arc;

use uuid::Uuid;

use crate::{
    UseCaseError,
    authorization::{Authorization, Caller, EffectivePermissions, Granted, Permit},
    credential::{CredentialName, LookupName},
    permission::{Actor, Grant, Operation, Operations, Permission, PermissionPath},
    ports::{CredentialRepository, PermissionRepository},
};

/// The permission use cases.
#[derive(Clone)]
pub struct Permissions {
    /// The stored permissions.
    pub repository: Arc<dyn PermissionRepository>,
    /// The stored credentials, for the older API, which addresses permissions by credential name.
    pub credentials: Arc<dyn CredentialRepository>,
    /// Decides which callers may read and change permissions.
    pub authorization: Authorization,
}

/// The reason why an actor may, or may not, perform an operation on a path.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// The actor.
    pub actor: Actor,
    /// The path.
    pub path: PermissionPath,
    /// The operation.
    pub operation: Operation,
    /// Whether permissions are enforced. If they are not, every actor may perform every operation.
    pub is_enforced: bool,
    /// Whether the actor may perform the operation.
    pub is_allowed: bool,
    /// Every rule that could allow the operation, nearest first.
    pub considered: Vec<ConsideredRule>,
    /// The nearest permission that allows the operation on the path. `None` if permissions do not allow the operation.
    pub allowed_by: Option<Permission>,
    /// The first of the path and the stored name on which no permission allows the operation.
    pub denied_on: Option<String>,
    /// The name of the credential, if its stored casing differs from the path. The actor needs permission for both names.
    pub stored: Option<CredentialName>,
}

/// A rule that was evaluated.
#[derive(Clone, Debug)]
pub struct ConsideredRule {
    /// A path that covers the explained path.
    pub path: PermissionPath,
    /// The permission on this path, if there is one.
    pub permission: Option<Permission>,
}

/// The permissions on the name of one credential.
#[derive(Clone, Debug)]
pub struct CredentialPermissions {
    /// The credential's name.
    pub name: CredentialName,
    /// The permissions on exactly this name, in the order in which they were added.
    pub permissions: Vec<Permission>,
}

impl Permissions {
    /// Checks that the caller may read or change the permissions on a path, and returns a permit.
    async fn permit_on<'a>(
        &self,
        caller: &'a Caller,
        operation: Operation,
        path: &PermissionPath,
    ) -> Result<Permit<'a>, UseCaseError> {
        let name = path.lookup();
        let permit = self.authorization.permit_exactly(caller, operation, &name);
        permit.await.map_err(about_permissions)
    }

    /// Checks that the caller may add permissions on a path, and returns a permit.
    async fn permit_to_add<'a>(
        &self,
        caller: &'a Caller,
        path: &PermissionPath,
    ) -> Result<Permit<'a>, UseCaseError> {
        let permit = self.permit_on(caller, Operation::WriteAcl, path);
        permit.await.map_err(|error| match error {
            UseCaseError::PermissionNotFound => UseCaseError::PermissionNotAddable,
            error => error,
        })
    }

    /// Returns the permission with this id if the caller may read or change it.
    async fn permit_by_id<'a>(
        &self,
        caller: &'a Caller,
        operation: Operation,
        id: Uuid,
    ) -> Result<(Permit<'a>, Permission), UseCaseError> {
        let Some(permission) = self.repository.by_id(id).await? else {
            let refused = self
                .authorization
                .refuse_absent(caller, operation, id)
                .await;
            return Err(about_permissions(refused));
        };
        let permit = self.permit_on(caller, operation, &permission.path).await?;
        permit.record_resource(id);
        Ok((permit, permission))
    }

    /// Records the requested grant in the caller's trail, before it is permitted or refused.
    fn record_grant_request(caller: &Caller, grant: &Grant) {
        let granted = Granted {
            actor: grant.actor.clone(),
            operations: Some(grant.operations),
        };
        caller.trail().record_change_request(&grant.path, granted);
    }

    /// Prevents a caller from changing its own permissions, if permissions are enforced.
    fn refuse_own(&self, caller: &Caller, actor: &Actor) -> Result<(), UseCaseError> {
        if self.authorization.is_enforced() && caller.actor() == actor {
            return Err(UseCaseError::OwnPermission);
        }
        Ok(())
    }

    /// Returns the permission with this id.
    ///
    /// # Errors
    /// [`UseCaseError::PermissionNotFound`] if there is no such permission, or the caller may not read it.
    pub async fn by_id(&self, caller: &Caller, id: Uuid) -> Result<Permission, UseCaseError> {
        let (_, permission) = self.permit_by_id(caller, Operation::ReadAcl, id).await?;
        Ok(permission)
    }

    /// Returns the permission of an actor on exactly this path, in this casing.
    ///
    /// # Errors
    /// [`UseCaseError::PermissionNotFound`] if there is no such permission, or the caller may not read it.
    pub async fn of_actor_on(
        &self,
        caller: &Caller,
        actor: &Actor,
        path: &LookupName,
    ) -> Result<Permission, UseCaseError> {
        let path = PermissionPath::of_lookup(path);
        let permit = self.permit_on(caller, Operation::ReadAcl, &path).await?;
        let found = self.repository.of_actor_on(actor, &[path]).await?;
        let permission = found.into_iter().next();
        let permission = permission.ok_or(UseCaseError::PermissionNotFound)?;
        permit.record_resource(permission.id);
        Ok(permission)
    }

    /// Explains why an actor may, or may not, perform an operation on a path. Evaluates the same permissions as requests do.
    ///
    /// # Errors
    /// [`UseCaseError::PermissionsNotReadable`] if the caller may not read the permissions on the path.
    pub async fn explain(
        &self,
        caller: &Caller,
        actor: Actor,
        operation: Operation,
        path: PermissionPath,
    ) -> Result<Explanation, UseCaseError> {
        let permit = self.permit_on(caller, Operation::ReadAcl, &path);
        let permit = permit.await.map_err(|error| match error {
            UseCaseError::PermissionNotFound => UseCaseError::PermissionsNotReadable,
            error => error,
        })?;
        let covering = PermissionPath::covering(path.as_str());
        let (mut permissions, stored) = self
            .repository
            .of_actor_on_name(&actor, &covering, &path.lookup())
            .await?;
        // If the credential is stored in another casing, the actor needs the permission in both casings, except to change
        // permissions, which are on exactly the path. If the caller may not read the permissions on the stored name, the
        // explanation is the same as without such a credential, and takes as long.
        let stored = stored.filter(|stored| stored.as_str() != path.as_str());
        let shown = stored.as_ref().map_or(path.as_str(), |name| name.as_str());
        let (authorization, read) = (&self.authorization, Operation::ReadAcl);
        let may_read = authorization.may(caller.actor(), read, shown).await?;
        let is_needed = may_read && operation != Operation::WriteAcl;
        let stored = stored.filter(|_| is_needed);
        if let Some(stored) = &stored {
            let covering = PermissionPath::covering(stored.as_str());
            permissions.extend(self.repository.of_actor_on(&actor, &covering).await?);
        }
        let effective = EffectivePermissions::of(permissions);
        let casings =
            || std::iter::once(path.as_str()).chain(stored.iter().map(CredentialName::as_str));
        let mut considered: Vec<ConsideredRule> = Vec::new();
        for (path, permission) in casings().flat_map(|casing| effective.considered(casing)) {
            if considered.iter().all(|rule| rule.path != path) {
                considered.push(ConsideredRule {
                    path,
                    permission: permission.cloned(),
                });
            }
        }
        let denied_on = casings()
            .find(|casing| !effective.allow(operation, casing))
            .map(str::to_owned);
        let allowing = effective.allowing(operation, path.as_str());
        let allowed_by = allowing.filter(|_| denied_on.is_none()).cloned();
        if let Some(permission) = &allowed_by {
            permit.record_resource(permission.id);
        }
        let is_enforced = self.authorization.is_enforced();
        Ok(Explanation {
            is_enforced,
            is_allowed: !is_enforced || denied_on.is_none(),
            considered,
            denied_on,
            allowed_by,
            actor,
            path,
            operation,
            stored,
        })
    }

    /// Adds a permission. The path need not match an existing credential.
    ///
    /// # Errors
    /// - [`UseCaseError::PermissionNotAddable`] if the caller may not change the permissions on the path.
    /// - [`UseCaseError::OwnPermission`] if the caller is the actor.
    /// - [`UseCaseError::PermissionExists`] if the actor already has a permission on the path, with any operations.
    pub async fn add(&self, caller: &Caller, grant: &Grant) -> Result<Permission, UseCaseError> {
        Self::record_grant_request(caller, grant);
        let permit = self.permit_to_add(caller, &grant.path).await?;
        self.refuse_own(caller, &grant.actor)?;
        let added = self.repository.add(grant).await?;
        let permission = added.ok_or(UseCaseError::PermissionExists)?;
        permit.record_permission(&permission);
        Ok(permission)
    }

    /// Replaces the operations of a permission.
    ///
    /// # Errors
    /// [`UseCaseError::PermissionNotFound`] if there is no such permission or the caller may not change it, and
    /// [`UseCaseError::OwnPermission`] if the caller is its actor.
    pub async fn amend(
        &self,
        caller: &Caller,
        id: Uuid,
        operations: Operations,
    ) -> Result<Permission, UseCaseError> {
        self.replace_operations(caller, id, operations, |_| true)
            .await
    }

    /// Replaces the operations of a permission with the operations of a grant for the same path and actor.
    ///
    /// # Errors
    /// [`UseCaseError::PermissionNotFound`] if there is no such permission or the caller may not change it,
    /// [`UseCaseError::OwnPermission`] if the caller is its actor, and [`UseCaseError::PermissionFixed`] if path or actor differ.
    pub async fn replace(
        &self,
        caller: &Caller,
        id: Uuid,
        grant: &Grant,
    ) -> Result<Permission, UseCaseError> {
        let is_same = |permission: &Permission| {
            permission.path == grant.path && permission.actor == grant.actor
        };
        self.replace_operations(caller, id, grant.operations, is_same)
            .await
    }

    async fn replace_operations(
        &self,
        caller: &Caller,
        id: Uuid,
        operations: Operations,
        is_expected: impl Fn(&Permission) -> bool,
    ) -> Result<Permission, UseCaseError> {
        let (permit, stored) = self.permit_by_id(caller, Operation::WriteAcl, id).await?;
        let permission = Permission {
            operations,
            ..stored
        };
        permit.record_permission(&permission);
        self.refuse_own(caller, &permission.actor)?;
        if !is_expected(&permission) {
            return Err(UseCaseError::PermissionFixed);
        }
        // The path and the actor of a permission never change, so the permit remains valid while the permission exists.
        let replaced = self.repository.replace_operations(id, operations).await?;
        replaced.ok_or(UseCaseError::PermissionNotFound)
    }

    /// Deletes a permission and returns it.
    ///
    /// # Errors
    /// [`UseCaseError::PermissionNotFound`] if there is no such permission or the caller may not change it, and
    /// [`UseCaseError::OwnPermission`] if the caller is its actor.
    pub async fn delete(&self, caller: &Caller, id: Uuid) -> Result<Permission, UseCaseError> {
        let (permit, permission) = self.permit_by_id(caller, Operation::WriteAcl, id).await?;
        permit.record_permission(&permission);
        self.refuse_own(caller, &permission.actor)?;
        let deleted = self.repository.delete(id).await?;
        deleted.ok_or(UseCaseError::PermissionNotFound)
    }

    /// Returns the permissions on exactly the name of a credential, in its stored casing. The caller must be allowed to read
    /// the permissions on the name both in the requested and in the stored casing.
    ///
    /// # Errors
    /// [`UseCaseError::NotFound`] if there is no such credential, or the caller may not read its permissions, and
    /// [`UseCaseError::TooManyPermissions`] beyond [`LISTED_PERMISSIONS_MAX`].
    pub async fn of_credential(
        &self,
        caller: &Caller,
        name: &LookupName,
    ) -> Result<CredentialPermissions, UseCaseError> {
        // The permission is checked first: otherwise the response time would reveal whether a credential exists whose permissions
        // the caller may not read.
        let permit = self
            .authorization
            .permit(caller, Operation::ReadAcl, name)
            .await?;
        let stored = self.credentials.stored_name(name).await?;
        let stored = stored.filter(|stored| permit.covers(stored));
        let name = stored.ok_or(UseCaseError::NotFound)?;
        let path = PermissionPath::of_lookup(&name.lookup());
        let one_too_many = LISTED_PERMISSIONS_MAX + 1;
        let permissions = self.repository.on_path(&path, one_too_many).await?;
        if permissions.len() > LISTED_PERMISSIONS_MAX {
            return Err(UseCaseError::TooManyPermissions);
        }
        for permission in &permissions {
            permit.record_resource(permission.id);
        }
        Ok(CredentialPermissions { name, permissions })
    }

    /// Grants all of these permissions on one path, or none of them. The credential need not exist. Existing permissions of
    /// the actors are not removed.
    ///
    /// # Errors
    /// - [`UseCaseError::PermissionNotAddable`] if the caller may not change the permissions on the path.
    /// - [`UseCaseError::OwnPermission`] if the caller is one of the actors.
    /// - [`UseCaseError::PermissionCovered`] if the permissions of one actor on this path and on enclosing paths already allow every
    ///   operation of its grant.
    pub async fn grant_on_credential(
        &self,
        caller: &Caller,
        path: &PermissionPath,
        grants: &[Grant],
    ) -> Result<(), UseCaseError> {
        for grant in grants {
            Self::record_grant_request(caller, grant);
        }
        let permit = self.permit_to_add(caller, path).await?;
        for grant in grants {
            self.refuse_own(caller, &grant.actor)?;
        }
        let repository = &self.repository;
        let granted = repository.grant_uncovered(caller.actor(), grants).await?;
        for permission in granted.map_err(UseCaseError::PermissionCovered)? {
            permit.record_permission(&permission);
        }
        Ok(())
    }

    /// Deletes the permission of an actor on exactly the name of a credential. The credential need not exist.
    ///
    /// # Errors
    /// [`UseCaseError::PermissionNotFound`] if there is no such permission or the caller may not change it, and
    /// [`UseCaseError::OwnPermission`] if the caller is the actor.
    pub async fn delete_on_credential(
        &self,
        caller: &Caller,
        actor: &Actor,
        name: &LookupName,
    ) -> Result<(), UseCaseError> {
        let path = PermissionPath::of_lookup(name);
        let revoked = Granted {
            actor: actor.clone(),
            operations: None,
        };
        caller.trail().record_change_request(&path, revoked);
        let permit = self.permit_on(caller, Operation::WriteAcl, &path).await?;
        self.refuse_own(caller, actor)?;
        let deleted = self.repository.delete_of_actor_on(actor, &path).await?;
        let permission = deleted.ok_or(UseCaseError::PermissionNotFound)?;
        permit.record_permission(&permission);
        Ok(())
    }
}

fn about_permissions(failure: UseCaseError) -> UseCaseError {
    match failure {
        UseCaseError::NotFound => UseCaseError::PermissionNotFound,
        failure => failure,
    }
}

/// The maximum number of grants in one request.
pub const CREDENTIAL_GRANTS_MAX: usize = 100;

/// The maximum number of permissions in a list. Each is one event in the audit trail.
pub const LISTED_PERMISSIONS_MAX: usize = 1_000;

/// A page of the permissions that apply to a path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CoveringPermissions {
    /// At most [`COVERING_PERMISSIONS_MAX`] permissions: first the permissions on the path itself, then on the enclosing paths,
    /// nearest first. On each path in the order of their actors.
    pub permissions: Vec<Permission>,
    /// The enclosing paths whose permissions the caller may not read, nearest first.
    pub hidden: Vec<PermissionPath>,
    /// The position after which the next page starts; `None` for the last page.
    pub next: Option<ListPosition>,
}

/// A position in the permissions that apply to a path. No permission needs to exist at the position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListPosition {
    /// The path of the last permission before the position.
    pub path: PermissionPath,
    /// Its actor.
    pub actor: Actor,
}

impl Permissions {
    /// Returns a page of the permissions that apply to a path. Omits the permissions on enclosing paths on which the caller may
    /// not read permissions. A position on a path that does not cover `path` is the start.
    ///
    /// # Errors
    /// [`UseCaseError::PermissionNotFound`] if the caller may not read the permissions on the path.
    pub async fn covering(
        &self,
        caller: &Caller,
        path: &PermissionPath,
        from: Option<&ListPosition>,
    ) -> Result<CoveringPermissions, UseCaseError> {
        let own = self
            .authorization
            .permissions_covering_all(caller, &[path.lookup()])
            .await?;
        let permit = |path: &PermissionPath| own.permit(caller, Operation::ReadAcl, &path.lookup());
        permit(path).map_err(about_permissions)?;
        let (visible, hidden) = PermissionPath::covering(path.as_str())
            .into_iter()
            .partition::<Vec<_>, _>(|path| own.allow(Operation::ReadAcl, path.as_str()));
        let from = from.and_then(|from| {
            let first = visible.iter().position(|path| *path == from.path)?;
            Some((first, &from.actor))
        });
        let mut page = CoveringPermissions {
            hidden,
            ..CoveringPermissions::default()
        };
        let first = from.map_or(0, |(first, _)| first);
        for (index, path) in visible.iter().enumerate().skip(first) {
            let after = from.filter(|(first, _)| index == *first);
            let after = after.map(|(_, actor)| actor);
            let missing = COVERING_PERMISSIONS_MAX + 1 - page.permissions.len();
            let repository = &self.repository;
            let permissions = repository.on_path_after(path, after, missing).await?;
            let permit = permit(path).map_err(about_permissions)?;
            for permission in permissions {
                if page.permissions.len() == COVERING_PERMISSIONS_MAX {
                    page.next = page.permissions.last().map(ListPosition::of);
                    return Ok(page);
                }
                permit.record_resource(permission.id);
                page.permissions.push(permission);
            }
        }
        Ok(page)
    }
}

impl ListPosition {
    fn of(permission: &Permission) -> Self {
        Self {
            path: permission.path.clone(),
            actor: permission.actor.clone(),
        }
    }
}

/// The maximum number of permissions on a page. Each is one event in the audit trail.
pub const COVERING_PERMISSIONS_MAX: usize = 100;
