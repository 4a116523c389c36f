//! The pages, one file each.

pub(crate) mod browse;
pub(crate) mod certificate;
pub(crate) mod certificates;
pub(crate) mod credential;
pub(crate) mod download;
pub(crate) mod expiring;
pub(crate) mod explain;
pub(crate) mod generate;
pub(crate) mod keys_and_plugins;
pub(crate) mod login;
pub(crate) mod overview;
pub(crate) mod permission;
pub(crate) mod permissions;
pub(crate) mod rotation;
mod schema;
pub(crate) mod set;
