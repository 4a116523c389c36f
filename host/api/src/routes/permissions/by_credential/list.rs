//! `GET /api/v1/permissions`: the permissions on a credential.

use std::sync::Arc;

use axum::{Extension, extract::State, http::Uri, response::Response};
use keywright_core::{
    authorization::Caller,
    credential::LookupName,
    permission::{Operation::ReadAcl, Permission},
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::super::{failed, operation_names};
use crate::{
    Api,
    description::{Described, Parameter, Tag},
    request::QueryParameters,
    response::{ApiFailure, rendered},
    route::{Access::Permission, Route, route},
};

/// The route.
pub(crate) fn route() -> Route {
    route!(GET "/api/v1/permissions", Permission(ReadAcl), "GET_PERMISSIONS", handler, describe)
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

/// Describes the operation.
fn describe() -> Described {
    Described::new(
        "listCredentialPermissions",
        Tag::Permissions,
        "Lists the permissions on exactly one credential name",
    )
    .text("Use `GET /api/v2/permissions` instead.")
    .deprecated()
    .parameter(Parameter::required("credential_name", "The credential's name.").like("/demo/web"))
    .answer::<ListResponse<'_>>(200, "The permissions.")
    .answered(
        "one",
        json!({
            "credential_name": "/demo/web",
            "permissions": [{"actor": "uaa-user:1", "path": "/demo/web", "operations": ["read"]}],
        }),
    )
    .fails(400, "The name is missing, empty or repeated.")
    .fails(
        404,
        "The credential does not exist, or the caller may not read its permissions.",
    )
}

/// Lists the permissions on exactly one credential name.
async fn handler(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Arc<Caller>>,
    uri: Uri,
) -> Result<Response, ApiFailure> {
    let query = QueryParameters::of(&uri);
    let name = LookupName::new(query.required("credential_name")?);
    let listed = api.permissions.of_credential(&caller, &name).await;
    let listed = listed.map_err(failed)?;
    rendered(&ListResponse {
        credential_name: listed.name.as_str(),
        permissions: listed.permissions.iter().map(EntryBody::of).collect(),
    })
}
