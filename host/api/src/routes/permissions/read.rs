//! Reads a permission by path and actor, or by id.

use std::sync::Arc;

use axum::{Extension, extract::State, http::Uri, response::Response};
use keywright_core::{
    authorization::Caller,
    credential::LookupName,
    permission::{Actor, Operation::ReadAcl},
};

use super::{PermissionBody, example, id, permission_response};
use crate::{
    Api,
    description::{Description, Parameter, Tag},
    request::QueryParameters,
    response::ApiError,
    route::{Access::Permission, PathIds, Route, route},
};

pub(crate) fn get_route() -> Route {
    route!(GET "/api/v2/permissions", Permission(ReadAcl), "GET_PERMISSIONS", get, describe_get)
}

pub(crate) fn get_by_id_route() -> Route {
    route!(GET "/api/v2/permissions/{permission_id}", Permission(ReadAcl), "GET_PERMISSIONS", get_by_id, describe_get_by_id)
}

fn describe_get() -> Description {
    Description::new(
        "getPermission",
        Tag::Permissions,
        "Reads an actor's permission on exactly one path",
    )
    .parameter(Parameter::required("path", "The path of the permission.").example("/demo/*"))
    .parameter(Parameter::required("actor", "The actor.").example("uaa-client:app"))
    .response::<PermissionBody<'_>>(200, "The permission.")
    .response_example("read", example())
    .error(400, "A parameter is missing, empty or repeated.")
    .error(
        404,
        "The permission does not exist, or the caller may not read permissions on the path.",
    )
}

async fn get(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Arc<Caller>>,
    uri: Uri,
) -> Result<Response, ApiError> {
    let query = QueryParameters::of(&uri);
    let path = LookupName::new(query.required("path")?);
    let actor = Actor::of_lookup(query.required("actor")?);
    let found = api.permissions.of_actor_on(&caller, &actor, &path).await;
    permission_response(found)
}

fn describe_get_by_id() -> Description {
    Description::new("getPermissionById", Tag::Permissions, "Reads a permission")
        .response::<PermissionBody<'_>>(200, "The permission.")
        .response_example("read", example())
        .error(
            404,
            "The permission does not exist, or the caller may not read permissions on its path.",
        )
}

async fn get_by_id(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Arc<Caller>>,
    path: PathIds<1>,
) -> Result<Response, ApiError> {
    let found = api.permissions.by_id(&caller, id(path)?).await;
    permission_response(found)
}
