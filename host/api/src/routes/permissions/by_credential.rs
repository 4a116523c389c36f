//! `/api/v1/permissions`: the older interface, for the permissions on one credential.

use std::sync::Arc;

use axum::{
    Extension,
    extract::{Request, State},
    http::{StatusCode, Uri},
    response::Response,
};
use keywright_core::{
    Failure,
    authorization::Caller,
    credential::LookupName,
    permission::{
        ACTOR_CHARACTERS_MAX, Actor, Grant,
        Operation::{ReadAcl, WriteAcl},
        Permission, PermissionPath,
    },
    permission_management::CREDENTIAL_GRANTS_MAX,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::{
    OPERATIONS_LISTED_MAX, OperationSchema, operation_names, parsed_operations, take_operations,
};
use crate::{
    Api,
    description::{Description, GrantedPath, Parameter, Tag},
    request::{BodyError, QueryParameters, RequestObject, parse_json_body},
    response::{ApiError, Endpoint, rendered},
    route::{Access, Route, route},
};

pub(crate) fn list_route() -> Route {
    route!(GET "/api/v1/permissions", Access::Permission(ReadAcl), "GET_PERMISSIONS", list, describe_list)
}

pub(crate) fn add_route() -> Route {
    route!(POST "/api/v1/permissions", Access::Permission(WriteAcl), "ADD_PERMISSIONS", add, describe_add)
}

pub(crate) fn delete_route() -> Route {
    route!(DELETE "/api/v1/permissions", Access::Permission(WriteAcl), "DELETE_PERMISSIONS", delete, describe_delete)
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "CredentialPermissions")]
struct ListResponse<'a> {
    credential_name: &'a str,
    permissions: Vec<EntryBody<'a>>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "CredentialPermission")]
struct EntryBody<'a> {
    actor: &'a str,
    path: &'a str,
    operations: Vec<&'static str>,
}

impl<'a> EntryBody<'a> {
    fn of(permission: &'a Permission) -> Self {
        Self {
            actor: permission.actor.as_str(),
            path: permission.path.as_str(),
            operations: operation_names(permission.operations),
        }
    }
}

fn describe_list() -> Description {
    Description::new(
        "listCredentialPermissions",
        Tag::Permissions,
        "Lists the permissions on exactly one credential name",
    )
    .text("Use `GET /api/v2/permissions` instead.")
    .deprecated()
    .parameter(
        Parameter::required("credential_name", "The credential's name.").example("/demo/web"),
    )
    .response::<ListResponse<'_>>(200, "The permissions.")
    .response_example(
        "one",
        json!({
            "credential_name": "/demo/web",
            "permissions": [{"actor": "uaa-user:1", "path": "/demo/web", "operations": ["read"]}],
        }),
    )
    .error(400, "The name is missing, empty or repeated.")
    .error(
        404,
        "The credential does not exist, or the caller may not read its permissions.",
    )
}

async fn list(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Arc<Caller>>,
    uri: Uri,
) -> Result<Response, ApiError> {
    let query = QueryParameters::of(&uri);
    let name = LookupName::new(query.required("credential_name")?);
    let listed = api.permissions.of_credential(&caller, &name).await?;
    rendered(&ListResponse {
        credential_name: listed.name.as_str(),
        permissions: listed.permissions.iter().map(EntryBody::of).collect(),
    })
}

/// The permissions to add to a credential.
#[derive(JsonSchema)]
#[schemars(rename = "AddCredentialPermissionsRequest", deny_unknown_fields)]
struct AddRequest {
    #[schemars(with = "GrantedPath")]
    credential_name: String,
    /// The permissions to add. Each applies to `credential_name`.
    #[schemars(length(min = 1, max = CREDENTIAL_GRANTS_MAX))]
    permissions: Vec<EntryRequest>,
}

/// A permission on the credential.
#[derive(JsonSchema)]
#[schemars(rename = "CredentialPermissionRequest", deny_unknown_fields)]
struct EntryRequest {
    /// The credential's name. If it is given, it must be the same as `credential_name`.
    #[schemars(default, with = "Option<GrantedPath>")]
    path: Option<String>,
    /// The actor, such as `uaa-client:<client id>`, `uaa-user:<user id>` or `mtls-app:<application id>`.
    #[schemars(length(min = 1, max = ACTOR_CHARACTERS_MAX))]
    actor: String,
    /// The granted operations.
    #[schemars(with = "Vec<OperationSchema>", length(min = 1, max = OPERATIONS_LISTED_MAX))]
    operations: Vec<String>,
}

impl EntryRequest {
    fn read(mut fields: RequestObject<'_>) -> Result<Self, BodyError> {
        let path = fields.take_text("path")?;
        let actor = fields.take_text("actor")?;
        let operations = take_operations(&mut fields);
        fields.finish()?;
        Ok(Self {
            path,
            operations: operations?,
            actor: actor.ok_or(BodyError::FieldMissing("actor"))?,
        })
    }

    /// Returns the grant on `path`. If the entry has a path of its own, it must be the same.
    fn grant_on(&self, path: &PermissionPath) -> Result<Grant, ApiError> {
        let operations = parsed_operations(&self.operations)?;
        if let Some(given) = &self.path
            && PermissionPath::parse(given).map_err(Failure::from)? != *path
        {
            let expected = "the same as credential_name";
            let field = "path";
            return Err(BodyError::FieldMalformed { field, expected }.into());
        }
        let actor = Actor::parse(&self.actor).map_err(Failure::from)?;
        Ok(Grant {
            path: path.clone(),
            actor,
            operations,
        })
    }
}

impl AddRequest {
    fn read(mut fields: RequestObject<'_>) -> Result<Self, BodyError> {
        let credential_name = fields.take_text("credential_name")?;
        let permissions = fields.take_objects("permissions")?.unwrap_or_default();
        fields.finish()?;
        if permissions.is_empty() || permissions.len() > CREDENTIAL_GRANTS_MAX {
            return Err(BodyError::FieldMalformed {
                field: "permissions",
                expected: "an array of 1 to 100 permissions",
            });
        }
        let permissions = permissions.into_iter().map(EntryRequest::read);
        Ok(Self {
            permissions: permissions.collect::<Result<_, _>>()?,
            credential_name: credential_name.ok_or(BodyError::FieldMissing("credential_name"))?,
        })
    }

    /// Returns the path and the grants on it.
    fn grants(&self) -> Result<(PermissionPath, Vec<Grant>), ApiError> {
        let path = PermissionPath::parse(&self.credential_name).map_err(Failure::from)?;
        let grants = self.permissions.iter().map(|entry| entry.grant_on(&path));
        let grants = grants.collect::<Result<_, _>>()?;
        Ok((path, grants))
    }
}

fn describe_add() -> Description {
    let entry = json!({"actor": "uaa-user:1", "operations": ["read"]});
    Description::new(
        "addCredentialPermissions",
        Tag::Permissions,
        "Grants operations on a credential",
    )
    .text("Use `POST /api/v2/permissions` instead.")
    .deprecated()
    .body::<AddRequest>()
    .request_example(
        "read",
        json!({"credential_name": "/demo/web", "permissions": [entry]}),
    )
    .empty_response(201, "The operations are granted.")
    .error(
        400,
        "The body is invalid, or a permission is the caller's own.",
    )
    .error(
        404,
        "The caller may not change permissions on the credential.",
    )
    .error(
        409,
        "An actor already has all operations that the body grants it.",
    )
    .error(
        422,
        "An operation is unknown, or the body has an unknown field.",
    )
}

async fn add(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Arc<Caller>>,
    request: Request,
) -> Result<StatusCode, ApiError> {
    let read = AddRequest::read;
    let request = parse_json_body(request, &api.limits, Endpoint::Other, read).await?;
    let (path, grants) = request.grants()?;
    let granted = api.permissions.grant_on_credential(&caller, &path, &grants);
    granted.await?;
    Ok(StatusCode::CREATED)
}

fn describe_delete() -> Description {
    Description::new(
        "deleteCredentialPermission",
        Tag::Permissions,
        "Deletes an actor's permission on exactly one credential name",
    )
    .text("Use `DELETE /api/v2/permissions/{permission_id}` instead.")
    .deprecated()
    .parameter(
        Parameter::required("credential_name", "The credential's name.").example("/demo/web"),
    )
    .parameter(Parameter::required("actor", "The actor.").example("uaa-user:1"))
    .empty_response(204, "The permission was deleted.")
    .error(
        400,
        "A parameter is missing, empty or repeated, or the permission is the caller's own.",
    )
    .error(
        404,
        "The permission does not exist, or the caller may not change permissions on the path.",
    )
}

async fn delete(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Arc<Caller>>,
    uri: Uri,
) -> Result<StatusCode, ApiError> {
    let query = QueryParameters::of(&uri);
    let name = LookupName::new(query.required("credential_name")?);
    let actor = Actor::of_lookup(query.required("actor")?);
    let deleted = api.permissions.delete_on_credential(&caller, &actor, &name);
    deleted.await?;
    Ok(StatusCode::NO_CONTENT)
}
