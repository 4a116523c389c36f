//! `GET /api/v2/permissions/{permission_id}`: one permission.

use std::sync::Arc;

use axum::{Extension, extract::State, response::Response};
use keywright_core::{authorization::Caller, permission::Operation::ReadAcl};

use super::{PermissionBody, answered, example, id};
use crate::{
    Api,
    description::{Described, Tag},
    response::ApiFailure,
    route::{Access::Permission, PathIds, Route, route},
};

/// The route.
pub(crate) fn route() -> Route {
    route!(GET "/api/v2/permissions/{permission_id}", Permission(ReadAcl), "GET_PERMISSIONS", handler, describe)
}

/// Describes the operation.
fn describe() -> Described {
    Described::new("getPermissionById", Tag::Permissions, "Reads a permission")
        .answer::<PermissionBody<'_>>(200, "The permission.")
        .answered("read", example())
        .fails(
            404,
            "There is no such permission, or the caller may not read permissions there.",
        )
}

/// Responds with a permission.
async fn handler(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Arc<Caller>>,
    path: PathIds<1>,
) -> Result<Response, ApiFailure> {
    let found = api.permissions.by_id(&caller, id(path)?).await;
    answered(found)
}
