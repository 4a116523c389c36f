//! Explaining what permissions come to.

use crate::{
    Failure,
    authorization::{Caller, Rules},
    credential::CredentialName,
    permission::{Actor, Operation, Permission, PermissionPath, Permissions},
};

/// Why an actor may do something on a path, or may not.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// Who.
    pub actor: Actor,
    /// On what.
    pub path: PermissionPath,
    /// Does what.
    pub operation: Operation,
    /// Whether permissions are enforced. While they are not, everybody may do everything.
    pub is_enforced: bool,
    /// Whether the actor may do it.
    pub is_allowed: bool,
    /// Every rule that could allow it, the nearest first.
    pub considered: Vec<ConsideredRule>,
    /// The permission that allows it, the nearest when there are several.
    pub allowed_by: Option<Permission>,
}

/// One rule that was looked at.
#[derive(Clone, Debug)]
pub struct ConsideredRule {
    /// The path on which a permission could stand.
    pub path: PermissionPath,
    /// The one that stands there.
    pub permission: Option<Permission>,
}

impl Permissions {
    /// Explains why an actor may do something on a path or may not, by the decision that is also enforced.
    ///
    /// # Errors
    /// [`Failure::PermissionNotFound`] when the caller may not read the permissions on the path.
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
        // A credential that is stored in another casing needs the permission in both.
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
