//! `PATCH /api/v2/permissions/{id}`: replaces the operations of a permission.

use std::sync::Arc;

use axum::{
    Extension,
    extract::{Path, Request, State, rejection::PathRejection},
    response::Response,
};
use keywright_core::{authorization::Caller, permission::Operations};
use uuid::Uuid;

use super::{PermissionBody, failed, id, parsed_operations, refused, take_operations};
use crate::{
    Api,
    request::{BodyRefused, RequestObject, read_json_body},
    response::{ApiFailure, rendered},
};

/// The operations in a body, which holds nothing else.
fn read_operations(body: &[u8]) -> Result<Operations, ApiFailure> {
    let names = RequestObject::parse(body).and_then(take_only_operations);
    parsed_operations(&names.map_err(|cause| refused(&cause))?).map_err(failed)
}

fn take_only_operations(mut members: RequestObject<'_>) -> Result<Vec<String>, BodyRefused> {
    let names = take_operations(&mut members)?;
    members.finish()?;
    Ok(names)
}

/// Replaces the operations of a permission and answers with it.
pub(crate) async fn handler(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Arc<Caller>>,
    path: Result<Path<Uuid>, PathRejection>,
    request: Request,
) -> Result<Response, ApiFailure> {
    let body = read_json_body(request, &api.limits).await?;
    let operations = read_operations(&body)?;
    let amended = api.permissions.amend(&caller, id(path)?, operations).await;
    rendered(&PermissionBody::of(&amended.map_err(failed)?))
}
