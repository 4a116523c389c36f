//! `DELETE /api/v2/permissions/{permission_id}`: deletes a permission.

use std::sync::Arc;

use axum::{Extension, extract::State, response::Response};
use keywright_core::{authorization::Caller, permission::Operation::WriteAcl};

use super::{PermissionBody, answered, example, id};
use crate::{
    Api,
    description::{Described, Tag},
    response::ApiFailure,
    route::{Access::Permission, PathIds, Route, route},
};

/// The route.
pub(crate) fn route() -> Route {
    route!(DELETE "/api/v2/permissions/{permission_id}", Permission(WriteAcl), "DELETE_PERMISSIONS", handler, describe)
}

/// Describes the operation.
fn describe() -> Described {
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
async fn handler(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Arc<Caller>>,
    path: PathIds<1>,
) -> Result<Response, ApiFailure> {
    let deleted = api.permissions.delete(&caller, id(path)?).await;
    answered(deleted)
}
