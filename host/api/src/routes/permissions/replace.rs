//! `PUT /api/v2/permissions/{permission_id}`: replaces a permission, which keeps its path and its actor.

use std::sync::Arc;

use axum::{
    Extension,
    extract::{Request, State},
    response::Response,
};
use keywright_core::authorization::Caller;

use super::{PermissionId, answered, id, read_grant};
use crate::{Api, audit::granted, response::ApiFailure};

/// Replaces a permission and answers with it.
pub(crate) async fn handler(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Arc<Caller>>,
    path: PermissionId,
    request: Request,
) -> Result<Response, ApiFailure> {
    let grant = read_grant(request, &api).await?;
    // A permission that is not there has no event of its own to tell it.
    let details = granted(&grant.actor, Some(grant.operations));
    caller.trail().tell_details(details);
    let replaced = api.permissions.replace(&caller, id(path)?, &grant).await;
    answered(replaced)
}
