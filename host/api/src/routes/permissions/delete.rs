//! `DELETE /api/v2/permissions/{permission_id}`: deletes a permission.

use std::sync::Arc;

use axum::{Extension, extract::State, response::Response};
use keywright_core::authorization::Caller;

use super::{PermissionId, answered, id};
use crate::{Api, response::ApiFailure};

/// Deletes a permission and answers with it.
pub(crate) async fn handler(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Arc<Caller>>,
    path: PermissionId,
) -> Result<Response, ApiFailure> {
    let deleted = api.permissions.delete(&caller, id(path)?).await;
    answered(deleted)
}
