//! `POST /api/v2/permissions`: adds a permission.

use std::sync::Arc;

use axum::{
    Extension,
    extract::{Request, State},
    http::StatusCode,
    response::Response,
};
use keywright_core::authorization::Caller;

use super::{PermissionBody, failed, read_grant};
use crate::{
    Api,
    response::{ApiFailure, rendered_with},
};

/// Adds a permission and answers with it.
pub(crate) async fn handler(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Arc<Caller>>,
    request: Request,
) -> Result<Response, ApiFailure> {
    let grant = read_grant(request, &api).await?;
    let added = api.permissions.add(&caller, &grant).await;
    rendered_with(
        StatusCode::CREATED,
        &PermissionBody::of(&added.map_err(failed)?),
    )
}
