//! `GET /api/v2/permissions/{id}`: one permission.

use std::sync::Arc;

use axum::{
    Extension,
    extract::{Path, State, rejection::PathRejection},
    response::Response,
};
use keywright_core::authorization::Caller;
use uuid::Uuid;

use super::{PermissionBody, failed, id};
use crate::{
    Api,
    response::{ApiFailure, rendered},
};

/// Reads a permission and answers with it.
pub(crate) async fn handler(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Arc<Caller>>,
    path: Result<Path<Uuid>, PathRejection>,
) -> Result<Response, ApiFailure> {
    let found = api.permissions.by_id(&caller, id(path)?).await;
    rendered(&PermissionBody::of(&found.map_err(failed)?))
}
