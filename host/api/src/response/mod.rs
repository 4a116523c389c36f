//! Making responses.

mod failure;
mod json;
mod version;

pub(crate) use failure::{ApiFailure, Endpoint, error_chain};
pub(crate) use json::{json, rendered, rendered_with, timestamp};
pub(crate) use version::VersionBody;
