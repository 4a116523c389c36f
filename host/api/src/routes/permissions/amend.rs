//! `PATCH /api/v2/permissions/{permission_id}`: replaces the operations of a permission.

use std::sync::Arc;

use axum::{
    Extension,
    extract::{Request, State},
    response::Response,
};
use keywright_core::{authorization::Caller, permission::Operations};
use serde_json::json;

use super::{
    PermissionId, answered, failed, id, operation_names, parsed_operations, refused,
    take_operations,
};
use crate::{
    Api,
    request::{BodyRefused, RequestObject, read_json_body},
    response::ApiFailure,
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
    path: PermissionId,
    request: Request,
) -> Result<Response, ApiFailure> {
    let body = read_json_body(request, &api.limits).await?;
    let operations = read_operations(&body)?;
    // A permission that is not there has no event of its own to tell it.
    let details = json!({"operations": operation_names(operations)});
    caller.trail().tell_details(details);
    let amended = api.permissions.amend(&caller, id(path)?, operations).await;
    answered(amended)
}
