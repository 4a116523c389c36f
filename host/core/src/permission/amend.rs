//! Changing the operations of a permission.

use uuid::Uuid;

use crate::{
    Failure,
    authorization::Caller,
    permission::{Operation, Operations, Permission, Permissions},
};

impl Permissions {
    /// Replaces the operations of a permission.
    ///
    /// # Errors
    /// [`Failure::PermissionNotFound`] if there is no such permission or the caller may not change it, and
    /// [`Failure::OwnPermission`] if the caller is its actor.
    pub async fn amend(
        &self,
        caller: &Caller,
        id: Uuid,
        operations: Operations,
    ) -> Result<Permission, Failure> {
        let (permit, stored) = self.permit_by_id(caller, Operation::WriteAcl, id).await?;
        let permission = Permission {
            operations,
            ..stored
        };
        permit.touched_permission(&permission);
        self.refuse_own(caller, &permission.actor)?;
        let amended = self.repository.replace_operations(id, operations).await?;
        amended.ok_or(Failure::PermissionNotFound)
    }
}
