//! Replacing a permission.

use uuid::Uuid;

use crate::{
    Failure,
    authorization::Caller,
    permission::{Grant, Operation, Permission, Permissions},
};

impl Permissions {
    /// Replaces the operations of a permission with those of a grant for the same path and actor.
    ///
    /// # Errors
    /// [`Failure::PermissionNotFound`] if there is no such permission or the caller may not change it,
    /// [`Failure::OwnPermission`] if the caller is its actor, and [`Failure::PermissionFixed`] if path or actor differ.
    pub async fn replace(
        &self,
        caller: &Caller,
        id: Uuid,
        grant: &Grant,
    ) -> Result<Permission, Failure> {
        let (permit, permission) = self.permit_by_id(caller, Operation::WriteAcl, id).await?;
        permit.touched_permission(&Permission {
            operations: grant.operations,
            ..permission.clone()
        });
        self.refuse_own(caller, &permission.actor)?;
        if permission.path != grant.path || permission.actor != grant.actor {
            return Err(Failure::PermissionFixed);
        }
        // The path and the actor of a permission never change, so the permit remains valid while the permission exists.
        let replaced = self
            .repository
            .replace_operations(id, grant.operations)
            .await?;
        replaced.ok_or(Failure::PermissionNotFound)
    }
}
