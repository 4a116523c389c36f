//! The endpoints. A file declares one endpoint, or all endpoints of one path.
//!
//! Each starts with its route: method, path, access, and action in the audit trail. The types of its request and response
//! follow, with derived schemas, then its description, which lists the statuses, and its handler. A folder's `mod.rs` contains
//! code that the folder's endpoints share.

pub(crate) mod certificates;
pub(crate) mod credentials;
pub(crate) mod description;
pub(crate) mod health;
pub(crate) mod interpolation;
pub(crate) mod management;
pub(crate) mod operations;
pub(crate) mod permissions;
pub(crate) mod types;
