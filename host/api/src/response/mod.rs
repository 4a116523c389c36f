//! Making responses.

mod failure;
mod held;
mod json;
mod version;

pub(crate) use failure::{ApiFailure, Endpoint, FailureBody, error_chain};
pub use held::{FRAME_BYTES_MAX, Held, HeldBody};
pub(crate) use json::{
    JSON_MEDIA_TYPE, LazyList, json, rendered, rendered_versions, rendered_with, timestamp,
};
pub(crate) use version::VersionBody;
