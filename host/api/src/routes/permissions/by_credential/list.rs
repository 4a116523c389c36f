//! `GET /api/v1/permissions`: the permissions on a credential.

use std::sync::Arc;

use axum::{Extension, extract::State, http::Uri, response::Response};
use keywright_core::{authorization::Caller, credential::LookupName, permission::Permission};
use serde::Serialize;

use super::super::{failed, operation_names};
use crate::{
    Api,
    request::QueryParameters,
    response::{ApiFailure, rendered},
};

#[derive(Serialize)]
struct ListResponse<'a> {
    credential_name: &'a str,
    permissions: Vec<EntryBody<'a>>,
}

#[derive(Serialize)]
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

/// Lists the permissions on exactly the credential's name.
pub(crate) async fn handler(
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
