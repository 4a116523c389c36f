//! Reading a permission by its id, and by its path and actor.

use uuid::Uuid;

use crate::{
    Failure,
    authorization::Caller,
    credential::LookupName,
    permission::{Actor, Operation, Permission, PermissionPath, Permissions},
};

impl Permissions {
    /// Returns the permission with this id.
    ///
    /// # Errors
    /// [`Failure::PermissionNotFound`] if there is no such permission, or the caller may not read it.
    pub async fn by_id(&self, caller: &Caller, id: Uuid) -> Result<Permission, Failure> {
        let (_, permission) = self.permit_by_id(caller, Operation::ReadAcl, id).await?;
        Ok(permission)
    }

    /// Returns the permission of an actor on exactly this path, in this casing.
    ///
    /// # Errors
    /// [`Failure::PermissionNotFound`] if there is no such permission, or the caller may not read it.
    pub async fn of_actor_on(
        &self,
        caller: &Caller,
        actor: &Actor,
        path: &LookupName,
    ) -> Result<Permission, Failure> {
        let path = PermissionPath::of_lookup(path);
        let permit = self.permit_on(caller, Operation::ReadAcl, &path).await?;
        let found = self.repository.of_actor_on(actor, &[path]).await?;
        let permission = found.into_iter().next();
        let permission = permission.ok_or(Failure::PermissionNotFound)?;
        permit.touched(permission.id);
        Ok(permission)
    }
}
