//! What the server says of itself, and what it says where there is nothing.

pub(crate) mod health;
pub(crate) mod info;
pub(crate) mod key_usage;
pub(crate) mod version;

use axum::http::StatusCode;

use crate::response::ApiFailure;

/// Answers for a path that is not there.
pub(crate) async fn no_such_path() -> ApiFailure {
    ApiFailure::new(StatusCode::NOT_FOUND, "there is nothing at this path")
}

/// Answers for a method that a path does not have: as if the path were not there, and with no body.
pub(crate) async fn no_such_method() -> StatusCode {
    StatusCode::NOT_FOUND
}
