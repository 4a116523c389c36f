//! The dependencies and the shared code of the permission use cases.

use std::sync::Arc;

use uuid::Uuid;

use crate::{
    Failure,
    authorization::{Authorization, Caller, Granted, Permit},
    permission::{Actor, Grant, Operation, Permission, PermissionPath},
    ports::{CredentialRepository, PermissionRepository},
};

/// The permission use cases.
#[derive(Clone)]
pub struct Permissions {
    /// The stored permissions.
    pub repository: Arc<dyn PermissionRepository>,
    /// The stored credentials, for the older API, which addresses permissions by credential name.
    pub credentials: Arc<dyn CredentialRepository>,
    /// Decides who may read and change permissions.
    pub authorization: Authorization,
}

impl Permissions {
    /// Permits a caller to read or change the permissions on a path.
    pub(super) async fn permit_on<'a>(
        &self,
        caller: &'a Caller,
        operation: Operation,
        path: &PermissionPath,
    ) -> Result<Permit<'a>, Failure> {
        let permit = self
            .authorization
            .permit_path(caller, operation, path)
            .await;
        permit.map_err(about_permissions)
    }

    /// Returns the permission with this id if the caller may read or change it.
    pub(super) async fn permit_by_id<'a>(
        &self,
        caller: &'a Caller,
        operation: Operation,
        id: Uuid,
    ) -> Result<(Permit<'a>, Permission), Failure> {
        let Some(permission) = self.repository.by_id(id).await? else {
            let refused = self.authorization.refuse_absent(caller).await;
            return Err(about_permissions(refused));
        };
        let permit = self.permit_on(caller, operation, &permission.path).await?;
        permit.touched(id);
        Ok((permit, permission))
    }

    /// Records the requested grant in the caller's trail, before it is permitted or refused.
    pub(super) fn ask_to_grant(caller: &Caller, grant: &Grant) {
        let granted = Granted {
            actor: grant.actor.clone(),
            operations: Some(grant.operations),
        };
        caller.trail().ask_to_change(&grant.path, granted);
    }

    /// Prevents a caller from changing its own permissions, if permissions are enforced.
    pub(super) fn refuse_own(&self, caller: &Caller, actor: &Actor) -> Result<(), Failure> {
        if self.authorization.is_enforced() && caller.actor() == actor {
            return Err(Failure::OwnPermission);
        }
        Ok(())
    }
}

fn about_permissions(failure: Failure) -> Failure {
    match failure {
        Failure::NotFound => Failure::PermissionNotFound,
        failure => failure,
    }
}
