//! The API: one file per noun, with the requests, the responses and the methods of [`Client`](crate::Client) that send them.

pub(crate) mod certificates;
pub(crate) mod credentials;
pub(crate) mod generation;
pub(crate) mod interpolation;
pub(crate) mod operations;
pub(crate) mod permissions;
pub(crate) mod rotation;
pub(crate) mod types;
mod version;
