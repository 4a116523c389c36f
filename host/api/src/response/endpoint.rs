//! The endpoints on which the status of a failure depends.

use axum::http::StatusCode;

/// The endpoint of a failure, if the status depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// `POST /api/v1/data` for generating.
    Generate,
    /// Any other endpoint.
    Other,
    /// `POST`, `PUT` and `PATCH` below `/api/v2/permissions`.
    Permission,
    /// `POST /api/v1/regenerate`.
    Regenerate,
    /// `POST /api/v1/data` for regenerating.
    RegenerateThroughData,
    /// `PUT /api/v1/data`.
    Set,
}

impl Endpoint {
    /// Returns the status for an unknown field.
    pub(super) fn unknown_field_status(self) -> StatusCode {
        match self {
            Self::Generate | Self::RegenerateThroughData => StatusCode::BAD_REQUEST,
            Self::Other | Self::Permission | Self::Regenerate | Self::Set => {
                StatusCode::UNPROCESSABLE_ENTITY
            }
        }
    }

    /// Returns the status for missing operations of a permission, or operations that are not an array of strings.
    pub(super) fn malformed_operations_status(self) -> StatusCode {
        match self {
            Self::Permission => StatusCode::UNPROCESSABLE_ENTITY,
            Self::Generate
            | Self::Other
            | Self::Regenerate
            | Self::RegenerateThroughData
            | Self::Set => StatusCode::BAD_REQUEST,
        }
    }

    /// Returns the status for an unknown type.
    pub(super) fn unknown_type_status(self) -> StatusCode {
        match self {
            Self::Set => StatusCode::UNPROCESSABLE_ENTITY,
            Self::Generate
            | Self::Other
            | Self::Permission
            | Self::Regenerate
            | Self::RegenerateThroughData => StatusCode::BAD_REQUEST,
        }
    }

    /// Returns the status for metadata beyond its limit.
    pub(super) fn long_metadata_status(self) -> StatusCode {
        match self {
            Self::Regenerate | Self::RegenerateThroughData => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Generate | Self::Other | Self::Permission | Self::Set => StatusCode::BAD_REQUEST,
        }
    }
}
