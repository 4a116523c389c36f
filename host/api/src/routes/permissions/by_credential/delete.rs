//! `DELETE /api/v1/permissions`: revokes an actor's permission on a credential.

use std::sync::Arc;

use axum::{
    Extension,
    extract::State,
    http::{StatusCode, Uri},
};
use keywright_core::{
    authorization::Caller,
    credential::LookupName,
    permission::{Actor, Operation::WriteAcl},
};

use super::super::failed;
use crate::{
    Api,
    description::{Described, Parameter, Tag},
    request::QueryParameters,
    response::ApiFailure,
    route::{Access::Permission, Route, route},
};

/// The route.
pub(crate) fn route() -> Route {
    route!(DELETE "/api/v1/permissions", Permission(WriteAcl), "DELETE_PERMISSIONS", handler, describe)
}

/// Describes the operation.
fn describe() -> Described {
    Described::new(
        "deleteCredentialPermission",
        Tag::Permissions,
        "Deletes an actor's permission on exactly one credential name",
    )
    .text("Use `DELETE /api/v2/permissions/{permission_id}` instead.")
    .deprecated()
    .parameter(Parameter::required("credential_name", "The credential's name.").like("/demo/web"))
    .parameter(Parameter::required("actor", "The actor.").like("uaa-user:1"))
    .empty_answer(204, "The permission was deleted.")
    .fails(
        400,
        "A parameter is missing, empty or repeated, or the permission is the caller's own.",
    )
    .fails(
        404,
        "The permission does not exist, or the caller may not change permissions on the path.",
    )
}

/// Deletes an actor's permission on exactly one credential name.
async fn handler(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Arc<Caller>>,
    uri: Uri,
) -> Result<StatusCode, ApiFailure> {
    let query = QueryParameters::of(&uri);
    let name = LookupName::new(query.required("credential_name")?);
    let actor = Actor::of_lookup(query.required("actor")?);
    let deleted = api.permissions.delete_on_credential(&caller, &actor, &name);
    deleted.await.map_err(failed)?;
    Ok(StatusCode::NO_CONTENT)
}
