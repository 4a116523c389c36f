//! Explaining what permissions come to.

use crate::{
    Failure,
    authorization::{Caller, Rules},
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
        let rules = Rules::of(self.repository.of_actor_on(&actor, &covering).await?);
        let considered = rules.considered(path.as_str());
        let considered: Vec<_> = considered
            .map(|(path, permission)| ConsideredRule {
                path,
                permission: permission.cloned(),
            })
            .collect();
        let allowed_by = rules.allowing(operation, path.as_str()).cloned();
        if let Some(permission) = &allowed_by {
            permit.touched(permission.id);
        }
        let is_enforced = self.authorization.is_enforced();
        Ok(Explanation {
            is_enforced,
            is_allowed: !is_enforced || rules.allow(operation, path.as_str()),
            considered,
            allowed_by,
            actor,
            path,
            operation,
        })
    }
}
