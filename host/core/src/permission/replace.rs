//! Replacing a permission.

use uuid::Uuid;

use crate::{
    Failure,
    authorization::Caller,
    permission::{Grant, Operation, Permission, Permissions},
};

impl Permissions {
    /// Gives a permission the operations of a grant in the place of its own. Path and actor must be those that it has.
    ///
    /// # Errors
    /// [`Failure::PermissionNotFound`] when there is none or the caller may not change it, [`Failure::OwnPermission`] when
    /// the caller is its actor, and [`Failure::PermissionFixed`] when path or actor differ.
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
        // Neither path nor actor of a permission ever change: what was permitted holds for as long as it is there.
        let replaced = self
            .repository
            .replace_operations(id, grant.operations)
            .await?;
        replaced.ok_or(Failure::PermissionNotFound)
    }
}
