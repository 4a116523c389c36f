//! What the server says of itself, and what it says where there is nothing.

pub(crate) mod health;
pub(crate) mod info;
pub(crate) mod key_usage;
pub(crate) mod version;

use axum::http::StatusCode;

use crate::response::ApiFailure;

/// What fails for a path that is not there.
pub(crate) fn no_such_path() -> ApiFailure {
    ApiFailure::new(StatusCode::NOT_FOUND, "there is nothing at this path")
}
