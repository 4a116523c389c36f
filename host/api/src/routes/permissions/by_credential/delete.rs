//! `DELETE /api/v1/permissions`: takes from an actor what it may do with a credential.

use std::sync::Arc;

use axum::{
    Extension,
    extract::State,
    http::{StatusCode, Uri},
};
use keywright_core::{authorization::Caller, credential::LookupName, permission::Actor};

use super::super::failed;
use crate::{Api, request::QueryParameters, response::ApiFailure};

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
