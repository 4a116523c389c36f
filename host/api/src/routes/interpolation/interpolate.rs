//! `POST /api/v1/interpolate`: fills the references in a document.

use std::sync::Arc;

use axum::{
    Extension,
    extract::{Request, State},
    http::StatusCode,
    response::Response,
};
use keywright_core::authorization::Caller;

use crate::{
    Api,
    request::{parse_document, read_json_body},
    response::{ApiFailure, Endpoint, json},
};

/// Answers with the document, its references filled; members keep their order.
pub(crate) async fn handler(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Arc<Caller>>,
    request: Request,
) -> Result<Response, ApiFailure> {
    let body = read_json_body(request, &api.limits).await?;
    let document =
        parse_document(&body).map_err(|refused| ApiFailure::body(&refused, Endpoint::Other))?;
    let interpolation = api.interpolation.as_ref().ok_or_else(|| {
        ApiFailure::new(
            StatusCode::NOT_IMPLEMENTED,
            "this server has no resolver plugin configured and can't interpolate",
        )
    })?;
    let interpolated = interpolation
        .interpolate(&caller, &document)
        .await
        .map_err(|failure| ApiFailure::of(failure, Endpoint::Other))?;
    Ok(json(StatusCode::OK, interpolated))
}
