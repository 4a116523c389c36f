//! Permissions: which actor may perform which operations, on one credential name or on all names below a path.
//!
//! Permissions are independent of credentials: a permission can exist before the credential does, and remains when the
//! credential is deleted. Permissions are additive, and only deleting a permission revokes it. Only
//! [`crate::authorization`] evaluates them.
//!
//! The use cases are methods of [`Permissions`], one file each; `by_credential` has those of the older API. A caller that
//! may not read or change the permissions on a path gets the same error as for permissions that do not exist.

mod actor;
mod add;
mod amend;
mod by_credential;
mod delete;
mod explain;
mod get;
mod operation;
mod path;
mod replace;
mod service;

use uuid::Uuid;

use crate::authorization::Rules;

pub use actor::{ACTOR_CHARACTERS_MAX, ACTOR_KINDS, Actor, ActorMalformed};
pub use by_credential::{CREDENTIAL_GRANTS_MAX, CredentialPermissions};
pub use explain::{ConsideredRule, Explanation};
pub use operation::{Operation, OperationUnknown, Operations};
pub use path::{PERMISSION_PATH_CHARACTERS_MAX, PathMalformed, PermissionPath};
pub use service::Permissions;

/// The operations that an actor may perform on a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permission {
    /// The id.
    pub id: Uuid,
    /// The path.
    pub path: PermissionPath,
    /// The actor.
    pub actor: Actor,
    /// The allowed operations.
    pub operations: Operations,
}

/// A permission to grant, without an id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The path.
    pub path: PermissionPath,
    /// The actor.
    pub actor: Actor,
    /// The operations to allow.
    pub operations: Operations,
}

impl Grant {
    /// Returns whether these permissions of the actor together already allow every operation of the grant.
    #[must_use]
    pub fn is_covered_by(&self, permissions: Vec<Permission>) -> bool {
        let rules = Rules::of(permissions);
        let path = self.path.as_str();
        self.operations
            .iter()
            .all(|operation| rules.allow(operation, path))
    }
}
