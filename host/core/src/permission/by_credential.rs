//! Permissions as the older interface speaks of them: by the credential that they are about.

use crate::{
    Failure,
    authorization::{Caller, Granted},
    credential::{CredentialName, LookupName},
    permission::{Actor, Grant, Operation, Permission, PermissionPath, Permissions},
};

/// How many grants may be made together.
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
    /// The permissions on exactly the name of a credential, in the casing in which it is stored: of two names that differ
    /// in their casing alone, each has its own. The caller must be allowed to read those on the name as it asks for it and as
    /// it is stored.
    ///
    /// # Errors
    /// [`Failure::NotFound`] when there is no such credential, or the caller may not read the permissions on it.
    pub async fn of_credential(
        &self,
        caller: &Caller,
        name: &LookupName,
    ) -> Result<CredentialPermissions, Failure> {
        // One after the other: how long it takes to read what the caller may not would tell that it is there.
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

    /// Makes sure that each of these is granted, all of them on this one path; all or none. A credential need not be there,
    /// and what the actors may do with it already stays.
    ///
    /// # Errors
    /// [`Failure::PermissionNotFound`] when the caller may not change the permissions on the path,
    /// [`Failure::OwnPermission`] when it is one of the actors, and [`Failure::PermissionExists`] when one of them may do
    /// all of it already, be it by permissions on paths that enclose this one.
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

    /// Deletes the permission that an actor has on exactly the name of a credential, which need not be there.
    ///
    /// # Errors
    /// [`Failure::PermissionNotFound`] when there is none or the caller may not change it, and [`Failure::OwnPermission`]
    /// when the caller is the actor.
    pub async fn delete_on_credential(
        &self,
        caller: &Caller,
        actor: &Actor,
        name: &LookupName,
    ) -> Result<(), Failure> {
        let path = PermissionPath::of_lookup(name);
        let asked = Granted {
            actor: actor.clone(),
            operations: None,
        };
        caller.trail().ask_to_change(&path, asked);
        let permit = self.permit_on(caller, Operation::WriteAcl, &path).await?;
        self.refuse_own(caller, actor)?;
        let deleted = self.repository.delete_of_actor_on(actor, &path).await?;
        let permission = deleted.ok_or(Failure::PermissionNotFound)?;
        permit.touched_permission(&permission);
        Ok(())
    }
}
