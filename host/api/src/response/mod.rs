//! Creates responses.
//!
//! `body.rs` renders bodies, and sends a body while it holds the request's slot and memory. `error.rs` maps failures to statuses
//! and bodies.

mod body;
mod error;

pub use body::{FRAME_BYTES_MAX, Held, HeldBody};
pub(crate) use body::{
    JSON_MEDIA_TYPE, LazyList, VersionBody, json, list_bytes, rendered, rendered_list,
    rendered_versions, rendered_with, timestamp,
};
pub use error::error_chain;
pub(crate) use error::{ApiError, Endpoint, FailureBody, or_panicked};
