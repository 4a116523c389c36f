//! Explaining the effect of permissions.

use crate::{
    Failure,
    authorization::{Caller, Rules},
    credential::CredentialName,
    permission::{Actor, Operation, Permission, PermissionPath, Permissions},
};

/// The reason why an actor may, or may not, perform an operation on a path.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// The actor.
    pub actor: Actor,
    /// The path.
    pub path: PermissionPath,
    /// The operation.
    pub operation: Operation,
    /// Whether permissions are enforced. If they are not, every actor may perform every operation.
    pub is_enforced: bool,
    /// Whether the actor may perform the operation.
    pub is_allowed: bool,
    /// Every rule that could allow the operation, nearest first.
    pub considered: Vec<ConsideredRule>,
    /// The nearest permission that allows the operation.
    pub allowed_by: Option<Permission>,
}

/// A rule that was evaluated.
#[derive(Clone, Debug)]
pub struct ConsideredRule {
    /// The path of a possible permission.
    pub path: PermissionPath,
    /// The permission on this path, if there is one.
    pub permission: Option<Permission>,
}

impl Permissions {
    /// Explains why an actor may, or may not, perform an operation on a path. Evaluates the same rules as requests do.
    ///
    /// # Errors
    /// [`Failure::PermissionNotFound`] if the caller may not read the permissions on the path.
    pub async fn explain(
        &self,
        caller: &Caller,
        actor: Actor,
        operation: Operation,
        path: PermissionPath,
    ) -> Result<Explanation, Failure> {
        let permit = self.permit_on(caller, Operation::ReadAcl, &path).await?;
        let covering = PermissionPath::covering(path.as_str());
        let (mut permissions, stored) = self
            .repository
            .of_actor_on_name(&actor, &covering, &path.lookup())
            .await?;
        // A credential that is stored in another casing needs the permission in both casings.
        let stored = stored.filter(|stored| stored.as_str() != path.as_str());
        if let Some(stored) = &stored {
            let on_stored = PermissionPath::of_lookup(&stored.lookup());
            self.permit_on(caller, Operation::ReadAcl, &on_stored)
                .await?;
            let covering = PermissionPath::covering(stored.as_str());
            permissions.extend(self.repository.of_actor_on(&actor, &covering).await?);
        }
        let rules = Rules::of(permissions);
        let casings =
            || std::iter::once(path.as_str()).chain(stored.iter().map(CredentialName::as_str));
        let mut considered: Vec<ConsideredRule> = Vec::new();
        for (path, permission) in casings().flat_map(|casing| rules.considered(casing)) {
            if considered.iter().all(|rule| rule.path != path) {
                considered.push(ConsideredRule {
                    path,
                    permission: permission.cloned(),
                });
            }
        }
        let allowed_by = rules.allowing(operation, path.as_str()).cloned();
        if let Some(permission) = &allowed_by {
            permit.touched(permission.id);
        }
        let is_enforced = self.authorization.is_enforced();
        Ok(Explanation {
            is_enforced,
            is_allowed: !is_enforced || casings().all(|casing| rules.allow(operation, casing)),
            considered,
            allowed_by,
            actor,
            path,
            operation,
        })
    }
}
