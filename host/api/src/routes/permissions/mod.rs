//! `/api/v2/permissions`. The older `/api/v1/permissions` is in `by_credential`.

pub(crate) mod by_credential;
pub(crate) mod change;
pub(crate) mod explain;
pub(crate) mod read;

use axum::{extract::Request, response::Response};
use keywright_core::{
    Failure,
    permission::{
        ACTOR_CHARACTERS_MAX, Actor, Grant, Operation, Operations, Permission, PermissionPath,
    },
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    Api,
    description::GrantedPath,
    request::{BodyError, RequestObject, parse_json_body},
    response::{ApiError, Endpoint, rendered},
    route::PathIds,
};

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
    #[schemars(with = "Vec<OperationSchema>")]
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
#[derive(JsonSchema)]
#[schemars(rename = "PermissionRequest", deny_unknown_fields)]
struct GrantRequest {
    #[schemars(with = "GrantedPath")]
    path: String,
    /// The actor, such as `uaa-client:<client id>`, `uaa-user:<user id>` or `mtls-app:<application id>`.
    #[schemars(length(min = 1, max = ACTOR_CHARACTERS_MAX))]
    actor: String,
    /// The operations that the actor may use.
    #[schemars(with = "Vec<OperationSchema>", length(min = 1, max = OPERATIONS_LISTED_MAX))]
    operations: Vec<String>,
}

/// The name of an operation.
#[derive(JsonSchema)]
#[schemars(rename = "Operation", rename_all = "snake_case")]
#[expect(
    dead_code,
    reason = "only for the API description: operations are parsed by name"
)]
enum OperationSchema {
    Read,
    Write,
    Delete,
    ReadAcl,
    WriteAcl,
}

impl GrantRequest {
    /// Takes the three fields, and rejects others.
    fn read(mut fields: RequestObject<'_>) -> Result<Self, BodyError> {
        let path = fields.take_text("path")?;
        let actor = fields.take_text("actor")?;
        let operations = take_operations(&mut fields);
        fields.finish()?;
        Ok(Self {
            operations: operations?,
            path: path.ok_or(BodyError::FieldMissing("path"))?,
            actor: actor.ok_or(BodyError::FieldMissing("actor"))?,
        })
    }

    fn grant(&self) -> Result<Grant, Failure> {
        Ok(Grant {
            operations: parsed_operations(&self.operations)?,
            path: PermissionPath::parse(&self.path)?,
            actor: Actor::parse(&self.actor)?,
        })
    }
}

/// Reads a request that contains a complete permission.
async fn read_grant(request: Request, api: &Api) -> Result<Grant, ApiError> {
    let read = GrantRequest::read;
    let request = parse_json_body(request, &api.limits, Endpoint::Permission, read).await?;
    Ok(request.grant()?)
}

/// Takes the required field `operations`.
fn take_operations(fields: &mut RequestObject<'_>) -> Result<Vec<String>, BodyError> {
    let operations = fields.take_texts("operations").ok().flatten();
    let operations = operations.ok_or(BodyError::OperationsMalformed)?;
    if operations.len() > OPERATIONS_LISTED_MAX {
        return Err(BodyError::FieldMalformed {
            field: "operations",
            expected: "an array of at most 100 operations",
        });
    }
    Ok(operations)
}

fn parsed_operations(names: &[String]) -> Result<Operations, Failure> {
    let operations = names.iter().map(|name| Operation::parse(name));
    let operations: Vec<_> = operations.collect::<Result<_, _>>()?;
    Operations::of(operations).ok_or(Failure::OperationsMissing)
}

fn permission_response(permission: Result<Permission, Failure>) -> Result<Response, ApiError> {
    rendered(&PermissionBody::of(&permission?))
}

fn operation_names(operations: Operations) -> Vec<&'static str> {
    operations.iter().map(Operation::as_str).collect()
}

/// Returns the id of a path. A segment that is not a UUID is treated as an unknown id.
fn id(PathIds(id): PathIds<1>) -> Result<Uuid, ApiError> {
    let [id] = id.ok_or(Failure::PermissionNotFound)?;
    Ok(id)
}

/// Returns an example of a permission in a response.
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
