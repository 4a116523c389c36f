//! `DELETE /api/v1/certificates/{certificate_id}/versions/{version_id}`: deletes one version.

use std::sync::Arc;

use axum::{
    extract::{Path, State, rejection::PathRejection},
    response::Response,
};
use uuid::Uuid;

use super::{failed, ids, one};
use crate::{Api, response::ApiFailure};

/// Deletes a version and answers with it.
pub(crate) async fn handler(
    State(api): State<Arc<Api>>,
    path: Result<Path<(Uuid, Uuid)>, PathRejection>,
) -> Result<Response, ApiFailure> {
    let (certificate_id, version_id) = ids(path)?;
    let version = api
        .credentials
        .delete_certificate_version(certificate_id, version_id)
        .await
        .map_err(failed)?;
    one(&version)
}
