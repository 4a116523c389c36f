//! Permissions: which actor may perform which operations, on one credential name or on all names below a path.
//!
//! A permission stands for itself: it may be there before the credential is, and stays when the credential is deleted.
//! Permissions add up, and nothing takes one away but its own deletion. What they allow is decided in
//! [`crate::authorization`], and nowhere else.
//!
//! What can be done with permissions are the methods of [`Permissions`], one file for each; those of the older interface,
//! which speaks of a credential and of what is permitted on it, stand in `by_credential`. Whoever has no permission to read
//! or to change the permissions on a path hears of them what is heard of those that are not there.

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

/// What one actor may do on one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permission {
    /// Identifies the permission.
    pub id: Uuid,
    /// What it is about.
    pub path: PermissionPath,
    /// Whom it lets.
    pub actor: Actor,
    /// Do what.
    pub operations: Operations,
}

/// A permission without an id: one that is to be there, whatever it is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// What it is about.
    pub path: PermissionPath,
    /// Whom it lets.
    pub actor: Actor,
    /// Do what.
    pub operations: Operations,
}

impl Grant {
    /// Whether these permissions of the actor allow all of it already, be it by several of them.
    #[must_use]
    pub fn is_covered_by(&self, permissions: Vec<Permission>) -> bool {
        let rules = Rules::of(permissions);
        let path = self.path.as_str();
        self.operations
            .iter()
            .all(|operation| rules.allow(operation, path))
    }
}
