//! `/api/v1/permissions`: the older interface, for the permissions on one credential.

use axum::{http::StatusCode, response::Response};
use keywright_core::{
    UseCaseError,
    credential::LookupName,
    permission::{
        ACTOR_CHARACTERS_MAX, Actor, Grant,
        Operation::{ReadAcl, WriteAcl},
        Permission, PermissionPath,
    },
    permission_management::CREDENTIAL_GRANTS_MAX,
};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de::Error};
use serde_json::{json, value::RawValue};

use super::{OPERATIONS_LISTED_MAX, OperationNames, operation_names, parsed_operations};
use crate::{
    description::{GrantedPath, OperationName, Parameter},
    request::{BodyError, QueryParameters, RequestObject, StrictJson},
    response::{ApiError, rendered},
    route::{Access, Call, Route, route},
};

pub(crate) fn list_route() -> Route {
    route!(GET "/api/v1/permissions", Access::Permission(ReadAcl), "GET_PERMISSIONS", list,
        "listCredentialPermissions", Permissions, "Lists the permissions whose path is the name of this credential",
        400 => "The name is missing, empty or repeated.",
        404 => "The credential does not exist, or the caller may not read its permissions.",
        413 => "The credential has more than 1000 permissions.")
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
}

pub(crate) fn add_route() -> Route {
    let entry = json!({"actor": "uaa-user:1", "operations": ["read"]});
    route!(POST "/api/v1/permissions", Access::Permission(WriteAcl), "ADD_PERMISSIONS", add,
        "addCredentialPermissions", Permissions, "Grants operations on a credential",
        400 => "The body is invalid, or the caller is one of the actors.",
        404 => "The caller may not change permissions on the credential.",
        409 => "One of the actors already has all operations that the body grants it.",
        422 => "An operation is unknown, or the body has an unknown field.")
    .text("Use `POST /api/v2/permissions` instead.")
    .deprecated()
    .body::<AddRequest>()
    .request_example(
        "read",
        json!({"credential_name": "/demo/web", "permissions": [entry]}),
    )
    .empty_response(201, "The operations are granted.")
}

pub(crate) fn delete_route() -> Route {
    route!(DELETE "/api/v1/permissions", Access::Permission(WriteAcl), "DELETE_PERMISSIONS", delete,
        "deleteCredentialPermission", Permissions, "Deletes an actor's permission whose path is the name of this credential",
        400 => "A parameter is missing, empty or repeated, or the caller is the actor.",
        404 => "The permission does not exist, or the caller may not change permissions on the path.")
        .text("Use `DELETE /api/v2/permissions/{permission_id}` instead.")
        .deprecated()
        .parameter(
            Parameter::required("credential_name", "The credential's name.").example("/demo/web"),
        )
        .parameter(Parameter::required("actor", "The actor.").example("uaa-user:1"))
        .empty_response(204, "The permission was deleted.")
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

async fn list(Call { api, caller }: Call, query: QueryParameters) -> Result<Response, ApiError> {
    let name = LookupName::new(query.required("credential_name")?);
    let listed = api.permissions.of_credential(&caller, &name).await?;
    rendered(&ListResponse {
        credential_name: listed.name.as_str(),
        permissions: listed.permissions.iter().map(EntryBody::of).collect(),
    })
}

/// The permissions to add to a credential.
#[derive(Deserialize, JsonSchema)]
#[serde(rename = "AddCredentialPermissionsRequest", deny_unknown_fields)]
struct AddRequest {
    #[schemars(with = "GrantedPath")]
    credential_name: Option<String>,
    /// The permissions to add. Each applies to `credential_name`.
    #[schemars(with = "Vec<EntryRequest>", length(min = 1, max = CREDENTIAL_GRANTS_MAX))]
    permissions: Entries,
}

/// The permissions as JSON. Their errors are reported after unknown fields of the body.
struct Entries(Vec<Box<RawValue>>);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let entries = Option::<Vec<Box<RawValue>>>::deserialize(deserializer)
            .ok()
            .map(Option::unwrap_or_default)
            .filter(|entries| entries.iter().all(|entry| entry.get().starts_with('{')));
        entries
            .map(Self)
            .ok_or_else(|| D::Error::custom("an array of objects"))
    }
}

/// A permission on the credential.
#[derive(Deserialize, JsonSchema)]
#[serde(rename = "CredentialPermissionRequest", deny_unknown_fields)]
struct EntryRequest {
    /// The credential's name. If it is given, it must be the same as `credential_name`.
    #[serde(default)]
    #[schemars(with = "Option<GrantedPath>")]
    path: Option<String>,
    /// The actor, such as `uaa-client:<client id>`, `uaa-user:<user id>` or `mtls-app:<application id>`.
    #[schemars(with = "String", length(min = 1, max = ACTOR_CHARACTERS_MAX))]
    actor: Option<String>,
    /// The granted operations.
    #[schemars(with = "Vec<OperationName>", length(min = 1, max = OPERATIONS_LISTED_MAX))]
    operations: OperationNames,
}

/// The path, the actor and the operations of a permission.
struct Entry(Option<String>, String, Vec<String>);

impl Entry {
    fn of(entry: EntryRequest) -> Result<Self, ApiError> {
        let operations = entry.operations.listed(StatusCode::BAD_REQUEST)?;
        let actor = entry.actor.ok_or(BodyError::FieldMissing("actor"))?;
        Ok(Self(entry.path, actor, operations))
    }

    /// Returns the grant on `path`. If the entry has a path of its own, it must be the same.
    fn grant_on(&self, path: &PermissionPath) -> Result<Grant, ApiError> {
        let Self(given, actor, operations) = self;
        let operations = parsed_operations(operations)?;
        if let Some(given) = given
            && PermissionPath::parse(given).map_err(UseCaseError::from)? != *path
        {
            return Err(BodyError::field("path", "the same as credential_name").into());
        }
        Ok(Grant {
            path: path.clone(),
            actor: Actor::parse(actor).map_err(UseCaseError::from)?,
            operations,
        })
    }
}

impl AddRequest {
    fn grants(self) -> Result<(PermissionPath, Vec<Grant>), ApiError> {
        let Entries(entries) = self.permissions;
        if entries.is_empty() || entries.len() > CREDENTIAL_GRANTS_MAX {
            let expected = "an array of 1 to 100 permissions";
            return Err(BodyError::field("permissions", expected).into());
        }
        // An unknown field of any entry is reported before the other errors.
        let requests = entries
            .iter()
            .map(|json| RequestObject::parse(json.get().as_bytes())?.read());
        let requests: Vec<EntryRequest> = requests.collect::<Result<_, _>>()?;
        let entries = requests.into_iter().map(Entry::of);
        let entries: Vec<_> = entries.collect::<Result<_, ApiError>>()?;
        let name = self.credential_name;
        let name = name.ok_or(BodyError::FieldMissing("credential_name"))?;
        let path = PermissionPath::parse(&name).map_err(UseCaseError::from)?;
        let grants = entries.iter().map(|entry| entry.grant_on(&path));
        let grants = grants.collect::<Result<_, _>>()?;
        Ok((path, grants))
    }
}

async fn add(
    Call { api, caller }: Call,
    StrictJson(request): StrictJson<AddRequest>,
) -> Result<StatusCode, ApiError> {
    let (path, grants) = request.grants()?;
    let granted = api.permissions.grant_on_credential(&caller, &path, &grants);
    granted.await?;
    Ok(StatusCode::CREATED)
}

async fn delete(
    Call { api, caller }: Call,
    query: QueryParameters,
) -> Result<StatusCode, ApiError> {
    let name = LookupName::new(query.required("credential_name")?);
    let actor = Actor::of_lookup(query.required("actor")?);
    let deleted = api.permissions.delete_on_credential(&caller, &actor, &name);
    deleted.await?;
    Ok(StatusCode::NO_CONTENT)
}
