//! `GET /api/v1/data/{id}`: one version.

use std::sync::Arc;

use axum::{
    Extension,
    extract::{Path, State, rejection::PathRejection},
    response::Response,
};
use keywright_core::{Failure, authorization::Caller};
use uuid::Uuid;

use crate::{
    Api,
    response::{ApiFailure, Endpoint, VersionBody, rendered},
};

/// Answers with one version. What is no UUID is an id that nothing has.
pub(crate) async fn handler(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Arc<Caller>>,
    id: Result<Path<Uuid>, PathRejection>,
) -> Result<Response, ApiFailure> {
    let failed = |failure| ApiFailure::of(failure, Endpoint::Other);
    let Path(id) = id.map_err(|_| failed(Failure::NotFound))?;
    let version = api.credentials.by_id(&caller, id).await.map_err(failed)?;
    rendered(&VersionBody::of(&version).map_err(failed)?)
}
