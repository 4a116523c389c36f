//! Permissions: which actor may perform which operations, on one credential name or on all names below a path.
//!
//! A permission stands for itself: it may be there before the credential is, and stays when the credential is deleted.
//! Permissions add up, and nothing takes one away but its own deletion. What they allow is decided in
//! [`crate::authorization`], and nowhere else.

mod actor;
mod operation;
mod path;

use uuid::Uuid;

pub use actor::{ACTOR_CHARACTERS_MAX, Actor, ActorMalformed};
pub use operation::{Operation, OperationUnknown, Operations};
pub use path::{PERMISSION_PATH_CHARACTERS_MAX, PathMalformed, PermissionPath};

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
