//! `GET /api/v2/permissions`: the permission that an actor has on a path.

use std::sync::Arc;

use axum::{Extension, extract::State, http::Uri, response::Response};
use keywright_core::{authorization::Caller, credential::LookupName, permission::Actor};

use super::answered;
use crate::{Api, request::QueryParameters, response::ApiFailure};

/// Reads the one permission that stands on exactly this path.
pub(crate) async fn handler(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Arc<Caller>>,
    uri: Uri,
) -> Result<Response, ApiFailure> {
    let query = QueryParameters::of(&uri);
    let path = LookupName::new(query.required("path")?);
    let actor = Actor::of_lookup(query.required("actor")?);
    let found = api.permissions.of_actor_on(&caller, &actor, &path).await;
    answered(found)
}
