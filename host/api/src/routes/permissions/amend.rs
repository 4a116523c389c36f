//! `PATCH /api/v2/permissions/{permission_id}`: replaces the operations of a permission.

use std::sync::Arc;

use axum::{
    Extension,
    extract::{Request, State},
    response::Response,
};
use keywright_core::{
    Failure,
    authorization::Caller,
    permission::{Operation::WriteAcl, Operations},
};
use schemars::JsonSchema;
use serde_json::json;

use super::{
    OPERATIONS_LISTED_MAX, OperationSchema, PermissionBody, answered, example, failed, id,
    operation_names, parsed_operations, take_operations,
};
use crate::{
    Api,
    description::{Described, Tag},
    request::{BodyRefused, RequestObject, read_json_body},
    response::{ApiFailure, Endpoint},
    route::{Access::Permission, PathIds, Route, route},
};

/// The route.
pub(crate) fn route() -> Route {
    route!(PATCH "/api/v2/permissions/{permission_id}", Permission(WriteAcl), "PATCH_PERMISSIONS", handler, describe)
}

/// The members of the body.
#[derive(JsonSchema)]
#[schemars(rename = "AmendPermissionRequest", deny_unknown_fields)]
struct AmendRequest {
    /// What the actor may do from now on.
    #[schemars(with = "Vec<OperationSchema>", length(min = 1, max = OPERATIONS_LISTED_MAX))]
    operations: Vec<String>,
}

impl AmendRequest {
    fn read(body: &[u8]) -> Result<Self, BodyRefused> {
        let mut members = RequestObject::parse(body)?;
        let operations = take_operations(&mut members);
        members.finish()?;
        Ok(Self {
            operations: operations?,
        })
    }

    fn operations(&self) -> Result<Operations, Failure> {
        parsed_operations(&self.operations)
    }
}

/// Describes the operation.
fn describe() -> Described {
    Described::new(
        "amendPermission",
        Tag::Permissions,
        "Replaces the operations of a permission",
    )
    .body::<AmendRequest>()
    .asked("write", json!({"operations": ["read", "write"]}))
    .answer::<PermissionBody<'_>>(200, "The permission as it is now.")
    .answered("read", example())
    .fails(
        400,
        "The body breaks a rule, or the permission is the caller's own.",
    )
    .fails(
        404,
        "There is no such permission, or the caller may not change permissions there.",
    )
    .fails(
        422,
        "`operations` is missing or not an array of known operations, or the body has an unknown field.",
    )
}

/// Replaces the operations of a permission and responds with it.
async fn handler(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Arc<Caller>>,
    path: PathIds<1>,
    request: Request,
) -> Result<Response, ApiFailure> {
    let body = read_json_body(request, &api.limits).await?;
    let request = AmendRequest::read(&body)
        .map_err(|cause| ApiFailure::body(&cause, Endpoint::Permission))?;
    let operations = request.operations().map_err(failed)?;
    // If the permission does not exist, no event of its own contains these details.
    let details = json!({"operations": operation_names(operations)});
    caller.trail().tell_details(details);
    let amended = api.permissions.amend(&caller, id(path)?, operations).await;
    answered(amended)
}
