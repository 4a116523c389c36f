//! `PUT /api/v2/permissions/{id}`: replaces a permission, which keeps its path and its actor.

use std::sync::Arc;

use axum::{
    Extension,
    extract::{Path, Request, State, rejection::PathRejection},
    response::Response,
};
use keywright_core::authorization::Caller;
use uuid::Uuid;

use super::{PermissionBody, failed, id, read_grant};
use crate::{
    Api,
    request::read_json_body,
    response::{ApiFailure, rendered},
};

/// Replaces a permission and answers with it.
pub(crate) async fn handler(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Arc<Caller>>,
    path: Result<Path<Uuid>, PathRejection>,
    request: Request,
) -> Result<Response, ApiFailure> {
    let body = read_json_body(request, &api.limits).await?;
    let grant = read_grant(&body)?;
    let replaced = api.permissions.replace(&caller, id(path)?, &grant).await;
    rendered(&PermissionBody::of(&replaced.map_err(failed)?))
}
