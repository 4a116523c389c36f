//! `/api/v2/permissions`. The older `/api/v1/permissions` stands in `by_credential`.

pub(crate) mod add;
pub(crate) mod amend;
pub(crate) mod by_credential;
pub(crate) mod delete;
pub(crate) mod explain;
pub(crate) mod get;
pub(crate) mod get_by_id;
pub(crate) mod replace;

use axum::{
    extract::{Path, Request, rejection::PathRejection},
    response::Response,
};
use keywright_core::{
    Failure,
    permission::{Actor, Grant, Operation, Operations, Permission, PermissionPath},
};
use serde::Serialize;
use uuid::Uuid;

use crate::{
    Api,
    request::{BodyRefused, RequestObject, read_json_body},
    response::{ApiFailure, Endpoint, rendered},
};

/// A permission as it stands in responses.
#[derive(Serialize)]
struct PermissionBody<'a> {
    uuid: Uuid,
    path: &'a str,
    actor: &'a str,
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

/// A permission as it stands in requests: three members, all required.
struct GrantRequest {
    path: String,
    actor: String,
    operations: Vec<String>,
}

impl GrantRequest {
    /// Takes the three members, and finds no others.
    fn take(mut members: RequestObject<'_>) -> Result<Self, BodyRefused> {
        let path = members.take_text("path")?;
        let actor = members.take_text("actor")?;
        let operations = take_operations(&mut members)?;
        members.finish()?;
        Ok(Self {
            path: path.ok_or(BodyRefused::MemberMissing("path"))?,
            actor: actor.ok_or(BodyRefused::MemberMissing("actor"))?,
            operations,
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

/// The last segment of an address of one permission.
type PermissionId = Result<Path<Uuid>, PathRejection>;

/// Reads a request that names a permission whole.
async fn read_grant(request: Request, api: &Api) -> Result<Grant, ApiFailure> {
    let body = read_json_body(request, &api.limits).await?;
    let request = RequestObject::parse(&body).and_then(GrantRequest::take);
    request
        .map_err(|cause| refused(&cause))?
        .grant()
        .map_err(failed)
}

/// Takes the member `operations`, which must be there and not be empty.
fn take_operations(members: &mut RequestObject<'_>) -> Result<Vec<String>, BodyRefused> {
    let operations = members.take_texts("operations")?;
    let operations = operations.ok_or(BodyRefused::MemberMissing("operations"))?;
    if operations.len() > OPERATIONS_LISTED_MAX {
        return Err(BodyRefused::MemberMalformed {
            member: "operations",
            expected: "an array of at most 100 operations",
        });
    }
    Ok(operations)
}

/// The operations of these names.
fn parsed_operations(names: &[String]) -> Result<Operations, Failure> {
    let operations = names.iter().map(|name| Operation::parse(name));
    let operations: Vec<_> = operations.collect::<Result<_, _>>()?;
    Operations::of(operations).ok_or(Failure::OperationsMissing)
}

/// Answers with a permission.
fn answered(permission: Result<Permission, Failure>) -> Result<Response, ApiFailure> {
    rendered(&PermissionBody::of(&permission.map_err(failed)?))
}

fn operation_names(operations: Operations) -> Vec<&'static str> {
    operations.iter().map(Operation::as_str).collect()
}

/// The id of a path. What is no UUID is an id that nothing has.
fn id(id: PermissionId) -> Result<Uuid, ApiFailure> {
    let Path(id) = id.map_err(|_| failed(Failure::PermissionNotFound))?;
    Ok(id)
}

fn refused(cause: &BodyRefused) -> ApiFailure {
    ApiFailure::body(cause, Endpoint::Other)
}

fn failed(failure: Failure) -> ApiFailure {
    ApiFailure::of(failure, Endpoint::Other)
}

/// How many operations may be listed in one place, each as often as it likes.
const OPERATIONS_LISTED_MAX: usize = 100;
