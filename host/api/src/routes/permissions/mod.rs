//! `/api/v2/permissions`. The older `/api/v1/permissions` is in `by_credential`.

pub(crate) mod by_credential;
pub(crate) mod explain;

use axum::{http::StatusCode, response::Response};
use keywright_core::{
    UseCaseError,
    credential::LookupName,
    permission::{
        ACTOR_CHARACTERS_MAX, Actor, Grant,
        Operation::{self, ReadAcl, WriteAcl},
        Operations, Permission, PermissionPath,
    },
};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    audit::granted,
    description::{GrantedPath, OperationName, Parameter},
    request::{BodyError, QueryParameters, StrictJson},
    response::{ApiError, rendered, rendered_with},
    route::{Access, Call, PathIds, Route, route},
};

pub(crate) fn get_route() -> Route {
    route!(GET "/api/v2/permissions", Access::Permission(ReadAcl), "GET_PERMISSIONS", get,
        "getPermission", Permissions, "Reads an actor's permission on exactly one path",
        400 => "A parameter is missing, empty or repeated.",
        404 => "The permission does not exist, or the caller may not read permissions on the path.")
    .parameter(Parameter::required("path", "The path of the permission.").example("/demo/*"))
    .parameter(Parameter::required("actor", "The actor.").example("uaa-client:app"))
    .response::<PermissionBody<'_>>(200, "The permission.")
    .response_example("read", example())
}

pub(crate) fn get_by_id_route() -> Route {
    route!(GET "/api/v2/permissions/{permission_id}", Access::Permission(ReadAcl), "GET_PERMISSIONS", get_by_id,
        "getPermissionById", Permissions, "Reads a permission",
        404 => "The permission does not exist, or the caller may not read permissions on its path.")
        .response::<PermissionBody<'_>>(200, "The permission.")
        .response_example("read", example())
}

async fn get(Call { api, caller }: Call, query: QueryParameters) -> Result<Response, ApiError> {
    let path = LookupName::new(query.required("path")?);
    let actor = Actor::of_lookup(query.required("actor")?);
    let found = api.permissions.of_actor_on(&caller, &actor, &path).await;
    permission_response(found)
}

async fn get_by_id(
    Call { api, caller }: Call,
    PathIds([id]): PathIds<1>,
) -> Result<Response, ApiError> {
    let found = api.permissions.by_id(&caller, id).await;
    permission_response(found)
}

pub(crate) fn add_route() -> Route {
    route!(POST "/api/v2/permissions", Access::Permission(WriteAcl), "ADD_PERMISSIONS", add,
        "addPermission", Permissions, "Grants operations on a name, or on all names below a path",
        400 => "The body is invalid, or the caller is the actor.",
        404 => "The caller may not change permissions on the path.",
        409 => "The actor already has a permission on this path.",
        422 => "`operations` is missing or not an array of known operations, or the body has an unknown field.")
        .body::<GrantRequest>()
        .request_example(
            "read",
            json!({"path": "/demo/*", "actor": "uaa-client:app", "operations": ["read"]}),
        )
        .response::<PermissionBody<'_>>(201, "The permission.")
        .response_example("read", example())
}

pub(crate) fn replace_route() -> Route {
    route!(PUT "/api/v2/permissions/{permission_id}", Access::Permission(WriteAcl), "PUT_PERMISSIONS", replace,
        "replacePermission", Permissions, "Replaces a permission",
        400 => "The body is invalid, its path or actor differs from the permission's, or the caller is the actor.",
        404 => "The permission does not exist, or the caller may not change permissions on its path.",
        422 => "`operations` is missing or not an array of known operations, or the body has an unknown field.")
        .text("Only the operations can change: `path` and `actor` must be the same as before.")
        .body::<GrantRequest>()
        .request_example("write", json!({"path": "/demo/*", "actor": "uaa-client:app", "operations": ["read", "write"]}))
        .response::<PermissionBody<'_>>(200, "The updated permission.")
        .response_example("read", example())
}

pub(crate) fn amend_route() -> Route {
    route!(PATCH "/api/v2/permissions/{permission_id}", Access::Permission(WriteAcl), "PATCH_PERMISSIONS", amend,
        "amendPermission", Permissions, "Replaces the operations of a permission",
        400 => "The body is invalid, or the caller is the actor.",
        404 => "The permission does not exist, or the caller may not change permissions on its path.",
        422 => "`operations` is missing or not an array of known operations, or the body has an unknown field.")
        .body::<AmendRequest>()
        .request_example("write", json!({"operations": ["read", "write"]}))
        .response::<PermissionBody<'_>>(200, "The updated permission.")
        .response_example("read", example())
}

pub(crate) fn delete_route() -> Route {
    route!(DELETE "/api/v2/permissions/{permission_id}", Access::Permission(WriteAcl), "DELETE_PERMISSIONS", delete,
        "deletePermission", Permissions, "Deletes a permission",
        400 => "The caller is the actor of the permission.",
        404 => "The permission does not exist, or the caller may not change permissions on its path.")
        .response::<PermissionBody<'_>>(200, "The deleted permission.")
        .response_example("read", example())
}

async fn add(
    Call { api, caller }: Call,
    StrictJson(request): StrictJson<GrantRequest>,
) -> Result<Response, ApiError> {
    let grant = request.grant()?;
    let added = api.permissions.add(&caller, &grant).await?;
    rendered_with(StatusCode::CREATED, &PermissionBody::of(&added))
}

async fn replace(
    Call { api, caller }: Call,
    PathIds([id]): PathIds<1>,
    StrictJson(request): StrictJson<GrantRequest>,
) -> Result<Response, ApiError> {
    let grant = request.grant()?;
    // Record the details with the request: if the permission does not exist, no resource event would contain them.
    let details = granted(&grant.actor, Some(grant.operations));
    caller.trail().set_details(details);
    let replaced = api.permissions.replace(&caller, id, &grant).await;
    permission_response(replaced)
}

/// The new operations of a permission.
#[derive(Deserialize, JsonSchema)]
#[serde(rename = "AmendPermissionRequest", deny_unknown_fields)]
struct AmendRequest {
    /// The new operations. They replace the current operations.
    #[schemars(with = "Vec<OperationName>", length(min = 1, max = OPERATIONS_LISTED_MAX))]
    operations: OperationNames,
}

async fn amend(
    Call { api, caller }: Call,
    PathIds([id]): PathIds<1>,
    StrictJson(request): StrictJson<AmendRequest>,
) -> Result<Response, ApiError> {
    let names = request
        .operations
        .listed(StatusCode::UNPROCESSABLE_ENTITY)?;
    let operations = parsed_operations(&names)?;
    // Record the details with the request: if the permission does not exist, no resource event would contain them.
    let details = json!({"operations": operation_names(operations)});
    caller.trail().set_details(details);
    let amended = api.permissions.amend(&caller, id, operations).await;
    permission_response(amended)
}

async fn delete(
    Call { api, caller }: Call,
    PathIds([id]): PathIds<1>,
) -> Result<Response, ApiError> {
    let deleted = api.permissions.delete(&caller, id).await;
    permission_response(deleted)
}

/// A permission in a response.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Permission")]
struct PermissionBody<'a> {
    /// Its id.
    uuid: Uuid,
    /// The full name of one credential, or a path that ends in `/*` for all names below it.
    path: &'a str,
    /// The actor, such as `uaa-client:<client id>`, `uaa-user:<user id>` or `mtls-app:<application id>`.
    actor: &'a str,
    /// The operations that the actor may use.
    #[schemars(with = "Vec<OperationName>")]
    operations: Vec<&'static str>,
}

impl<'a> PermissionBody<'a> {
    fn of(permission: &'a Permission) -> Self {
        Self {
            uuid: permission.id,
            path: permission.path.as_str(),
            actor: permission.actor.as_str(),
            operations: operation_names(permission.operations),
        }
    }
}

/// A permission in a request. All fields are required.
#[derive(Deserialize, JsonSchema)]
#[serde(rename = "PermissionRequest", deny_unknown_fields)]
struct GrantRequest {
    #[schemars(with = "GrantedPath")]
    path: Option<String>,
    /// The actor, such as `uaa-client:<client id>`, `uaa-user:<user id>` or `mtls-app:<application id>`.
    #[schemars(with = "String", length(min = 1, max = ACTOR_CHARACTERS_MAX))]
    actor: Option<String>,
    /// The operations that the actor may use.
    #[schemars(with = "Vec<OperationName>", length(min = 1, max = OPERATIONS_LISTED_MAX))]
    operations: OperationNames,
}

impl GrantRequest {
    fn grant(self) -> Result<Grant, ApiError> {
        let operations = self.operations.listed(StatusCode::UNPROCESSABLE_ENTITY)?;
        let path = self.path.ok_or(BodyError::FieldMissing("path"))?;
        let actor = self.actor.ok_or(BodyError::FieldMissing("actor"))?;
        Ok(Grant {
            operations: parsed_operations(&operations)?,
            path: PermissionPath::parse(&path).map_err(UseCaseError::from)?,
            actor: Actor::parse(&actor).map_err(UseCaseError::from)?,
        })
    }
}

/// The names of operations in a request: an error if they are not an array of strings, `None` if they are missing. Both errors
/// are reported after an unknown field, but before other missing fields.
struct OperationNames(Result<Option<Vec<String>>, NotStringsError>);

/// The operations are not an array of strings.
struct NotStringsError;

impl<'de> Deserialize<'de> for OperationNames {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let names = Option::deserialize(deserializer);
        Ok(Self(names.map_err(|_| NotStringsError)))
    }
}

impl OperationNames {
    /// Returns the names.
    ///
    /// # Errors
    /// `status` if they are missing or not an array of strings, 400 if there are too many.
    fn listed(self, status: StatusCode) -> Result<Vec<String>, ApiError> {
        let refused = |error| ApiError::new(status, error);
        let names = self
            .0
            .map_err(|_| refused("operations must be an array of strings"))?;
        let names = names.ok_or_else(|| refused("operations is required"))?;
        if names.len() > OPERATIONS_LISTED_MAX {
            return Err(
                BodyError::field("operations", "an array of at most 100 operations").into(),
            );
        }
        Ok(names)
    }
}

fn parsed_operations(names: &[String]) -> Result<Operations, UseCaseError> {
    let operations = names.iter().map(|name| Operation::parse(name));
    let operations: Vec<_> = operations.collect::<Result<_, _>>()?;
    Operations::of(operations).ok_or(UseCaseError::OperationsMissing)
}

fn permission_response(permission: Result<Permission, UseCaseError>) -> Result<Response, ApiError> {
    rendered(&PermissionBody::of(&permission?))
}

fn operation_names(operations: Operations) -> Vec<&'static str> {
    operations.iter().map(Operation::as_str).collect()
}

fn example() -> Value {
    json!({
        "uuid": "1c9e6fcb-ada4-40ea-bb90-b787f15db3fb",
        "path": "/demo/*",
        "actor": "uaa-client:app",
        "operations": ["read"],
    })
}

/// Maximum number of operations in a list, including duplicates.
const OPERATIONS_LISTED_MAX: usize = 100;
