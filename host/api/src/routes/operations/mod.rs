//! Operations of the server itself, and the failure for unknown paths.

pub(crate) mod health;
pub(crate) mod info;
pub(crate) mod key_usage;
pub(crate) mod version;

use axum::http::StatusCode;

use crate::response::ApiFailure;

/// Returns the failure for an unknown path.
pub(crate) fn no_such_path() -> ApiFailure {
    ApiFailure::new(StatusCode::NOT_FOUND, "there is nothing at this path")
}
