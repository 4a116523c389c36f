//! The pages, one file each.

pub(crate) mod browse;
pub(crate) mod credential;
pub(crate) mod generate;
pub(crate) mod login;
pub(crate) mod overview;
mod schema;
pub(crate) mod set;
