//! The older permission API, which addresses permissions by credential.

use crate::{
    Failure,
    authorization::{Caller, Granted},
    credential::{CredentialName, LookupName},
    permission::{Actor, Grant, Operation, Permission, PermissionPath, Permissions},
};

/// The maximum number of grants in one request.
pub const CREDENTIAL_GRANTS_MAX: usize = 100;

/// The permissions on the name of one credential.
#[derive(Clone, Debug)]
pub struct CredentialPermissions {
    /// The credential's name.
    pub name: CredentialName,
    /// The permissions on exactly this name, in the order in which they were added.
    pub permissions: Vec<Permission>,
}

impl Permissions {
    /// Returns the permissions on exactly the name of a credential, in its stored casing. The caller must be allowed to read
    /// the permissions on the name both in the requested and in the stored casing.
    ///
    /// # Errors
    /// [`Failure::NotFound`] if there is no such credential, or the caller may not read its permissions.
    pub async fn of_credential(
        &self,
        caller: &Caller,
        name: &LookupName,
    ) -> Result<CredentialPermissions, Failure> {
        // Sequential: otherwise the response time would reveal whether a credential exists that the caller may not read.
        let permit = self
            .authorization
            .permit(caller, Operation::ReadAcl, name)
            .await?;
        let stored = self.credentials.stored_name(name).await?;
        let name = stored.ok_or(Failure::NotFound)?;
        let path = PermissionPath::of_lookup(&name.lookup());
        let permissions = self.repository.on_path(&path).await?;
        for permission in &permissions {
            permit.touched(permission.id);
        }
        Ok(CredentialPermissions { name, permissions })
    }

    /// Grants all of these permissions on one path, or none. The credential need not exist. Existing permissions of the
    /// actors stay.
    ///
    /// # Errors
    /// [`Failure::PermissionNotFound`] if the caller may not change the permissions on the path,
    /// [`Failure::OwnPermission`] if it is one of the actors, and [`Failure::PermissionExists`] if the permissions of one
    /// actor on this path and on enclosing paths already allow every operation of its grant.
    pub async fn grant_on_credential(
        &self,
        caller: &Caller,
        path: &PermissionPath,
        grants: &[Grant],
    ) -> Result<(), Failure> {
        for grant in grants {
            Self::ask_to_grant(caller, grant);
        }
        let permit = self.permit_on(caller, Operation::WriteAcl, path).await?;
        for grant in grants {
            self.refuse_own(caller, &grant.actor)?;
        }
        let granted = self.repository.grant_uncovered(grants).await?;
        for permission in granted.ok_or(Failure::PermissionExists)? {
            permit.touched_permission(&permission);
        }
        Ok(())
    }

    /// Deletes the permission of an actor on exactly the name of a credential. The credential need not exist.
    ///
    /// # Errors
    /// [`Failure::PermissionNotFound`] if there is no such permission or the caller may not change it, and
    /// [`Failure::OwnPermission`] if the caller is the actor.
    pub async fn delete_on_credential(
        &self,
        caller: &Caller,
        actor: &Actor,
        name: &LookupName,
    ) -> Result<(), Failure> {
        let path = PermissionPath::of_lookup(name);
        let revoked = Granted {
            actor: actor.clone(),
            operations: None,
        };
        caller.trail().ask_to_change(&path, revoked);
        let permit = self.permit_on(caller, Operation::WriteAcl, &path).await?;
        self.refuse_own(caller, actor)?;
        let deleted = self.repository.delete_of_actor_on(actor, &path).await?;
        let permission = deleted.ok_or(Failure::PermissionNotFound)?;
        permit.touched_permission(&permission);
        Ok(())
    }
}
