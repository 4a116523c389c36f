//! Creates responses.

mod endpoint;
mod failure;
mod held;
mod json;
mod version;

pub(crate) use endpoint::Endpoint;
pub use failure::error_chain;
pub(crate) use failure::{ApiFailure, FailureBody};
pub use held::{FRAME_BYTES_MAX, Held, HeldBody};
pub(crate) use json::{
    JSON_MEDIA_TYPE, LazyList, json, list_bytes, rendered, rendered_list, rendered_versions,
    rendered_with, timestamp,
};
pub(crate) use version::VersionBody;
