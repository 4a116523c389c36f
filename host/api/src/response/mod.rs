//! Making responses.

mod failure;
mod held;
mod json;
mod version;

pub(crate) use failure::{ApiFailure, Endpoint, error_chain};
pub use held::HeldBody;
pub(crate) use json::{json, rendered, rendered_with, timestamp};
pub(crate) use version::VersionBody;
