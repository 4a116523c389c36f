//! Adds, replaces, amends and deletes permissions.

use std::sync::Arc;

use axum::{
    Extension,
    extract::{Request, State},
    http::StatusCode,
    response::Response,
};
use keywright_core::{authorization::Caller, permission::Operation::WriteAcl};
use schemars::JsonSchema;
use serde_json::json;

use super::{
    GrantRequest, OPERATIONS_LISTED_MAX, OperationSchema, PermissionBody, example, id,
    operation_names, parsed_operations, permission_response, read_grant, take_operations,
};
use crate::{
    Api,
    audit::granted,
    description::{Description, Tag},
    request::{BodyError, RequestObject, parse_json_body},
    response::{ApiError, Endpoint, rendered_with},
    route::{Access::Permission, PathIds, Route, route},
};

pub(crate) fn add_route() -> Route {
    route!(POST "/api/v2/permissions", Permission(WriteAcl), "ADD_PERMISSIONS", add, describe_add)
}

pub(crate) fn replace_route() -> Route {
    route!(PUT "/api/v2/permissions/{permission_id}", Permission(WriteAcl), "PUT_PERMISSIONS", replace, describe_replace)
}

pub(crate) fn amend_route() -> Route {
    route!(PATCH "/api/v2/permissions/{permission_id}", Permission(WriteAcl), "PATCH_PERMISSIONS", amend, describe_amend)
}

pub(crate) fn delete_route() -> Route {
    route!(DELETE "/api/v2/permissions/{permission_id}", Permission(WriteAcl), "DELETE_PERMISSIONS", delete, describe_delete)
}

fn describe_add() -> Description {
    Description::new(
        "addPermission",
        Tag::Permissions,
        "Grants operations on a name, or on all names below a path",
    )
    .body::<GrantRequest>()
    .request_example(
        "read",
        json!({"path": "/demo/*", "actor": "uaa-client:app", "operations": ["read"]}),
    )
    .response::<PermissionBody<'_>>(201, "The permission.")
    .response_example("read", example())
    .error(
        400,
        "The body is invalid, or the permission is the caller's own.",
    )
    .error(404, "The caller may not change permissions on the path.")
    .error(409, "The actor already has a permission on this path.")
    .error(
        422,
        "`operations` is missing or not an array of known operations, or the body has an unknown field.",
    )
}

async fn add(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Arc<Caller>>,
    request: Request,
) -> Result<Response, ApiError> {
    let grant = read_grant(request, &api).await?;
    let added = api.permissions.add(&caller, &grant).await?;
    rendered_with(StatusCode::CREATED, &PermissionBody::of(&added))
}

fn describe_replace() -> Description {
    Description::new("replacePermission", Tag::Permissions, "Replaces a permission")
        .text("Only the operations can change: `path` and `actor` must be the same as before.")
        .body::<GrantRequest>()
        .request_example("write", json!({"path": "/demo/*", "actor": "uaa-client:app", "operations": ["read", "write"]}))
        .response::<PermissionBody<'_>>(200, "The updated permission.")
        .response_example("read", example())
        .error(400, "The body is invalid, its path or actor differs from the permission's, or the permission is the caller's own.")
        .error(404, "The permission does not exist, or the caller may not change permissions on its path.")
        .error(422, "`operations` is missing or not an array of known operations, or the body has an unknown field.")
}

async fn replace(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Arc<Caller>>,
    path: PathIds<1>,
    request: Request,
) -> Result<Response, ApiError> {
    let grant = read_grant(request, &api).await?;
    // Record the details for the request: if the permission does not exist, no event about a resource contains them.
    let details = granted(&grant.actor, Some(grant.operations));
    caller.trail().set_details(details);
    let replaced = api.permissions.replace(&caller, id(path)?, &grant).await;
    permission_response(replaced)
}

/// The new operations of a permission.
#[derive(JsonSchema)]
#[schemars(rename = "AmendPermissionRequest", deny_unknown_fields)]
struct AmendRequest {
    /// The new operations. They replace the current operations.
    #[schemars(with = "Vec<OperationSchema>", length(min = 1, max = OPERATIONS_LISTED_MAX))]
    operations: Vec<String>,
}

impl AmendRequest {
    fn read(mut fields: RequestObject<'_>) -> Result<Self, BodyError> {
        let operations = take_operations(&mut fields);
        fields.finish()?;
        Ok(Self {
            operations: operations?,
        })
    }
}

fn describe_amend() -> Description {
    Description::new(
        "amendPermission",
        Tag::Permissions,
        "Replaces the operations of a permission",
    )
    .body::<AmendRequest>()
    .request_example("write", json!({"operations": ["read", "write"]}))
    .response::<PermissionBody<'_>>(200, "The updated permission.")
    .response_example("read", example())
    .error(
        400,
        "The body is invalid, or the permission is the caller's own.",
    )
    .error(
        404,
        "The permission does not exist, or the caller may not change permissions on its path.",
    )
    .error(
        422,
        "`operations` is missing or not an array of known operations, or the body has an unknown field.",
    )
}

async fn amend(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Arc<Caller>>,
    path: PathIds<1>,
    request: Request,
) -> Result<Response, ApiError> {
    let read = AmendRequest::read;
    let request = parse_json_body(request, &api.limits, Endpoint::Permission, read).await?;
    let operations = parsed_operations(&request.operations)?;
    // Record the details for the request: if the permission does not exist, no event about a resource contains them.
    let details = json!({"operations": operation_names(operations)});
    caller.trail().set_details(details);
    let amended = api.permissions.amend(&caller, id(path)?, operations).await;
    permission_response(amended)
}

fn describe_delete() -> Description {
    Description::new("deletePermission", Tag::Permissions, "Deletes a permission")
        .response::<PermissionBody<'_>>(200, "The deleted permission.")
        .response_example("read", example())
        .error(400, "The permission is the caller's own.")
        .error(
            404,
            "The permission does not exist, or the caller may not change permissions on its path.",
        )
}

async fn delete(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Arc<Caller>>,
    path: PathIds<1>,
) -> Result<Response, ApiError> {
    let deleted = api.permissions.delete(&caller, id(path)?).await;
    permission_response(deleted)
}
