//! The endpoints. A file declares one endpoint, all endpoints of one path, or small endpoints of one subject.
//!
//! Each endpoint starts with its route: method, path, access, action in the audit trail, and description with all statuses. Then come
//! the types of its request and response, from which schemas are derived, and its handler. A folder's `mod.rs` contains code that
//! the folder's endpoints share.

pub(crate) mod certificates;
pub(crate) mod credentials;
pub(crate) mod health;
pub(crate) mod interpolation;
pub(crate) mod management;
pub(crate) mod operations;
pub(crate) mod permissions;
pub(crate) mod types;
