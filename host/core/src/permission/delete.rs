//! Deleting a permission.

use uuid::Uuid;

use crate::{
    Failure,
    authorization::Caller,
    permission::{Operation, Permission, Permissions},
};

impl Permissions {
    /// Deletes a permission and returns it.
    ///
    /// # Errors
    /// [`Failure::PermissionNotFound`] if there is no such permission or the caller may not change it, and
    /// [`Failure::OwnPermission`] if the caller is its actor.
    pub async fn delete(&self, caller: &Caller, id: Uuid) -> Result<Permission, Failure> {
        let (permit, permission) = self.permit_by_id(caller, Operation::WriteAcl, id).await?;
        permit.touched_permission(&permission);
        self.refuse_own(caller, &permission.actor)?;
        let deleted = self.repository.delete(id).await?;
        deleted.ok_or(Failure::PermissionNotFound)
    }
}
