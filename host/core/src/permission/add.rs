//! Adding a permission.

use crate::{
    Failure,
    authorization::Caller,
    permission::{Grant, Operation, Permission, Permissions},
};

impl Permissions {
    /// Adds a permission. No credential on its path need exist.
    ///
    /// # Errors
    /// [`Failure::PermissionNotFound`] if the caller may not change the permissions on the path,
    /// [`Failure::OwnPermission`] if it is the actor itself, and [`Failure::PermissionExists`] if the actor already has a
    /// permission on the path, with any operations.
    pub async fn add(&self, caller: &Caller, grant: &Grant) -> Result<Permission, Failure> {
        Self::ask_to_grant(caller, grant);
        let permit = self
            .permit_on(caller, Operation::WriteAcl, &grant.path)
            .await?;
        self.refuse_own(caller, &grant.actor)?;
        let added = self.repository.add(grant).await?;
        let permission = added.ok_or(Failure::PermissionExists)?;
        permit.touched_permission(&permission);
        Ok(permission)
    }
}
