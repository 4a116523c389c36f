//! What permissions are kept with, and what all use cases of permissions share.

use std::sync::Arc;

use uuid::Uuid;

use crate::{
    Failure,
    authorization::{Authorization, Caller, Granted, Permit},
    permission::{Actor, Grant, Operation, Permission, PermissionPath},
    ports::{CredentialRepository, PermissionRepository},
};

/// What can be done with permissions.
#[derive(Clone)]
pub struct Permissions {
    /// Where permissions are kept.
    pub repository: Arc<dyn PermissionRepository>,
    /// Where credentials are kept, whose names the older interface asks for.
    pub credentials: Arc<dyn CredentialRepository>,
    /// What decides who may read and change them: permissions, too.
    pub authorization: Authorization,
}

impl Permissions {
    /// Lets a caller read or change the permissions on a path.
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

    /// The permission with this id, when the caller may read or change it.
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

    /// Says in the caller's trail what is to be granted, before that is permitted or refused.
    pub(super) fn ask_to_grant(caller: &Caller, grant: &Grant) {
        let granted = Granted {
            actor: grant.actor.clone(),
            operations: Some(grant.operations),
        };
        caller.trail().ask_to_change(&grant.path, granted);
    }

    /// Lets nobody give itself more than it has, nor shut itself out, while that means anything.
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
