//! The endpoints. A file declares one endpoint, or all endpoints of one path.
//!
//! Each endpoint starts with its route: method, path, access, and action in the audit trail. Then come the types of its request
//! and response, its description with all statuses, and its handler. Schemas are derived from the types. A folder's `mod.rs`
//! contains code that the folder's endpoints share.

pub(crate) mod certificates;
pub(crate) mod credentials;
pub(crate) mod description;
pub(crate) mod health;
pub(crate) mod interpolation;
pub(crate) mod management;
pub(crate) mod operations;
pub(crate) mod permissions;
pub(crate) mod types;
