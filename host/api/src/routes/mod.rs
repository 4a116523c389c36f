//! One folder per noun, one file per verb.

pub(crate) mod certificates;
pub(crate) mod credentials;
pub(crate) mod description;
pub(crate) mod interpolation;
pub(crate) mod management;
pub(crate) mod operations;
pub(crate) mod permissions;
pub(crate) mod types;
