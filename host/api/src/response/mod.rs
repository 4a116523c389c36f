//! Creates responses.
//!
//! `json.rs` renders bodies, `error.rs` maps failures to statuses and bodies, and `held.rs` sends a body while it holds the
//! request's slot and memory.

mod error;
mod held;
mod json;

pub use error::error_chain;
pub(crate) use error::{ApiError, Endpoint, FailureBody};
pub use held::{FRAME_BYTES_MAX, Held, HeldBody};
pub(crate) use json::{
    JSON_MEDIA_TYPE, LazyList, VersionBody, json, list_bytes, rendered, rendered_list,
    rendered_versions, rendered_with, timestamp,
};
