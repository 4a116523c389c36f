//! `PUT /api/v2/permissions/{permission_id}`: replaces the operations of a permission; its path and actor must stay the
//! same.

use std::sync::Arc;

use axum::{
    Extension,
    extract::{Request, State},
    response::Response,
};
use keywright_core::{authorization::Caller, permission::Operation::WriteAcl};
use serde_json::json;

use super::{GrantRequest, PermissionBody, answered, example, id, read_grant};
use crate::{
    Api,
    audit::granted,
    description::{Described, Tag},
    response::ApiFailure,
    route::{Access::Permission, PathIds, Route, route},
};

/// The route.
pub(crate) fn route() -> Route {
    route!(PUT "/api/v2/permissions/{permission_id}", Permission(WriteAcl), "PUT_PERMISSIONS", handler, describe)
}

/// Describes the operation.
fn describe() -> Described {
    Described::new("replacePermission", Tag::Permissions, "Replaces the operations of a permission, which keeps its path and its actor")
        .body::<GrantRequest>()
        .asked("write", json!({"path": "/demo/*", "actor": "uaa-client:app", "operations": ["read", "write"]}))
        .answer::<PermissionBody<'_>>(200, "The permission as it is now.")
        .answered("read", example())
        .fails(400, "The body breaks a rule or names another path or actor, or the permission is the caller's own.")
        .fails(404, "There is no such permission, or the caller may not change permissions there.")
        .fails(422, "`operations` is missing or not an array of known operations, or the body has an unknown field.")
}

/// Replaces a permission and responds with it.
async fn handler(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Arc<Caller>>,
    path: PathIds<1>,
    request: Request,
) -> Result<Response, ApiFailure> {
    let grant = read_grant(request, &api).await?;
    // If the permission does not exist, no event of its own contains these details.
    let details = granted(&grant.actor, Some(grant.operations));
    caller.trail().tell_details(details);
    let replaced = api.permissions.replace(&caller, id(path)?, &grant).await;
    answered(replaced)
}
