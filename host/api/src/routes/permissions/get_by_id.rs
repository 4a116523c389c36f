//! `GET /api/v2/permissions/{permission_id}`: one permission.

use std::sync::Arc;

use axum::{Extension, extract::State, response::Response};
use keywright_core::authorization::Caller;

use super::{PermissionBody, answered, example, id};
use crate::{
    Api,
    description::{Described, Tag},
    response::ApiFailure,
    route::PathIds,
};

/// Describes the operation.
pub(crate) fn describe() -> Described {
    Described::new("getPermissionById", Tag::Permissions, "Reads a permission")
        .answer::<PermissionBody<'_>>(200, "The permission.")
        .answered("read", example())
        .fails(
            404,
            "There is no such permission, or the caller may not read permissions there.",
        )
}

/// Responds with a permission.
pub(crate) async fn handler(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Arc<Caller>>,
    path: PathIds<1>,
) -> Result<Response, ApiFailure> {
    let found = api.permissions.by_id(&caller, id(path)?).await;
    answered(found)
}
