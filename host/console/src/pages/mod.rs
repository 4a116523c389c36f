//! The pages, one file each.

pub(crate) mod browse;
pub(crate) mod certificate;
pub(crate) mod certificates;
pub(crate) mod credential;
pub(crate) mod download;
pub(crate) mod expiring;
pub(crate) mod generate;
mod graph;
pub(crate) mod login;
pub(crate) mod overview;
pub(crate) mod rotation;
mod schema;
pub(crate) mod set;
