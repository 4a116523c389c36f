//! `GET /api/v2/permissions`: the permission that an actor has on a path.

use std::sync::Arc;

use axum::{Extension, extract::State, http::Uri, response::Response};
use keywright_core::{
    authorization::Caller,
    credential::LookupName,
    permission::{Actor, Operation::ReadAcl},
};

use super::{PermissionBody, answered, example};
use crate::{
    Api,
    description::{Described, Parameter, Tag},
    request::QueryParameters,
    response::ApiFailure,
    route::{Access::Permission, Route, route},
};

/// The route.
pub(crate) fn route() -> Route {
    route!(GET "/api/v2/permissions", Permission(ReadAcl), "GET_PERMISSIONS", handler, describe)
}

/// Describes the operation.
fn describe() -> Described {
    Described::new(
        "getPermission",
        Tag::Permissions,
        "Reads an actor's permission on exactly one path",
    )
    .parameter(Parameter::required("path", "The path of the permission.").like("/demo/*"))
    .parameter(Parameter::required("actor", "The actor.").like("uaa-client:app"))
    .answer::<PermissionBody<'_>>(200, "The permission.")
    .answered("read", example())
    .fails(400, "A parameter is missing, empty or repeated.")
    .fails(
        404,
        "The permission does not exist, or the caller may not read permissions on the path.",
    )
}

/// Reads the permission on exactly this path.
async fn handler(
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
