//! `POST /api/v2/permissions`: adds a permission.

use std::sync::Arc;

use axum::{
    Extension,
    extract::{Request, State},
    http::StatusCode,
    response::Response,
};
use keywright_core::{authorization::Caller, permission::Operation::WriteAcl};
use serde_json::json;

use super::{GrantRequest, PermissionBody, example, failed, read_grant};
use crate::{
    Api,
    description::{Described, Tag},
    response::{ApiFailure, rendered_with},
    route::{Access::Permission, Route, route},
};

/// The route.
pub(crate) fn route() -> Route {
    route!(POST "/api/v2/permissions", Permission(WriteAcl), "ADD_PERMISSIONS", handler, describe)
}

/// Describes the operation.
fn describe() -> Described {
    Described::new(
        "addPermission",
        Tag::Permissions,
        "Grants operations on a name, or on all names below a path",
    )
    .body::<GrantRequest>()
    .asked(
        "read",
        json!({"path": "/demo/*", "actor": "uaa-client:app", "operations": ["read"]}),
    )
    .answer::<PermissionBody<'_>>(201, "The permission.")
    .answered("read", example())
    .fails(
        400,
        "The body is invalid, or the permission is the caller's own.",
    )
    .fails(404, "The caller may not change permissions there.")
    .fails(409, "The actor already has a permission on this path.")
    .fails(
        422,
        "`operations` is missing or not an array of known operations, or the body has an unknown field.",
    )
}

/// Adds a permission and responds with it.
async fn handler(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Arc<Caller>>,
    request: Request,
) -> Result<Response, ApiFailure> {
    let grant = read_grant(request, &api).await?;
    let added = api.permissions.add(&caller, &grant).await;
    rendered_with(
        StatusCode::CREATED,
        &PermissionBody::of(&added.map_err(failed)?),
    )
}
