//! Creates responses.
//!
//! `json.rs` renders bodies, `failure.rs` maps failures to statuses and bodies, and `held.rs` sends a body while it holds the
//! request's slot and memory.

mod failure;
mod held;
mod json;

pub use failure::error_chain;
pub(crate) use failure::{ApiError, Endpoint, FailureBody};
pub use held::{FRAME_BYTES_MAX, Held, HeldBody};
pub(crate) use json::{
    JSON_MEDIA_TYPE, LazyList, VersionBody, json, list_bytes, rendered, rendered_list,
    rendered_versions, rendered_with, timestamp,
};
