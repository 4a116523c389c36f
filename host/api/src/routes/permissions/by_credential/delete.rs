//! `DELETE /api/v1/permissions`: takes from an actor what it may do with a credential.

use std::sync::Arc;

use axum::{
    Extension,
    extract::State,
    http::{StatusCode, Uri},
};
use keywright_core::{authorization::Caller, credential::LookupName, permission::Actor};

use super::super::failed;
use crate::{
    Api,
    description::{Described, Parameter, Tag},
    request::QueryParameters,
    response::ApiFailure,
};

/// What the description says of it.
pub(crate) fn describe() -> Described {
    Described::new(
        "deleteCredentialPermission",
        Tag::Permissions,
        "Deletes the permission that an actor has on exactly a credential's name",
    )
    .text("`DELETE /api/v2/permissions/{permission_id}` takes its place.")
    .deprecated()
    .parameter(Parameter::required("credential_name", "The credential's name.").like("/demo/web"))
    .parameter(Parameter::required("actor", "The actor.").like("uaa-user:1"))
    .empty_answer(204, "It is deleted.")
    .fails(
        400,
        "A parameter is missing, empty or given twice, or the permission is the caller's own.",
    )
    .fails(
        404,
        "There is no such permission, or the caller may not change permissions there.",
    )
}

/// Deletes the permission that an actor has on exactly the credential's name.
pub(crate) async fn handler(
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
