//! Adding a permission.

use crate::{
    Failure,
    authorization::Caller,
    permission::{Grant, Operation, Permission, Permissions},
};

impl Permissions {
    /// Adds a permission. There need not be anything yet that it is about.
    ///
    /// # Errors
    /// [`Failure::PermissionNotFound`] when the caller may not change the permissions on the path,
    /// [`Failure::OwnPermission`] when it is the actor itself, and [`Failure::PermissionExists`] when the actor has a
    /// permission on the path already, whatever its operations.
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
