//! `DELETE /api/v2/permissions/{permission_id}`: deletes a permission.

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
    Described::new("deletePermission", Tag::Permissions, "Deletes a permission")
        .answer::<PermissionBody<'_>>(200, "The permission that was deleted.")
        .answered("read", example())
        .fails(400, "The permission is the caller's own.")
        .fails(
            404,
            "There is no such permission, or the caller may not change permissions there.",
        )
}

/// Deletes a permission and responds with it.
pub(crate) async fn handler(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Arc<Caller>>,
    path: PathIds<1>,
) -> Result<Response, ApiFailure> {
    let deleted = api.permissions.delete(&caller, id(path)?).await;
    answered(deleted)
}
