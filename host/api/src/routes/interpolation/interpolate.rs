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
    description::{Described, Tag},
    request::{parse_document, read_json_body},
    response::{ApiFailure, Endpoint, json},
};
use serde_json::{Map, Value, json};

/// What the description says of it.
pub(crate) fn describe() -> Described {
    let value = json!({"host": "db.example", "port": 5432});
    Described::new("interpolate", Tag::Interpolation, "Fills the references in a document")
        .text("The document is an object of any members. Where a member `credentials` holds an object whose one member is `credhub-ref`, \
            `credhub_ref` or `store-ref` (the server's configuration may name others), it becomes the value of the credential that is \
            named there, which must be of type json. It goes on in read-only mode.")
        .body::<Map<String, Value>>()
        .asked("binding", json!({"services": [{"label": "db", "credentials": {"credhub-ref": "((/demo/database))"}}]}))
        .answer::<Map<String, Value>>(200, "The document, its references filled and all else as it was.")
        .answered("binding", json!({"services": [{"label": "db", "credentials": value}]}))
        .fails(400, "The document can't be read, or refers to a credential of another type.")
        .fails(404, "It refers to a credential that is not there, or that the caller may not read.")
        .fails(413, "What it refers to is too large.")
        .fails(501, "The server has no resolver configured.")
}

/// Answers with the document, its references filled; members keep their order.
pub(crate) async fn handler(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Arc<Caller>>,
    request: Request,
) -> Result<Response, ApiFailure> {
    let body = read_json_body(request, &api.limits).await?;
    let document =
        parse_document(&body).map_err(|refused| ApiFailure::body(&refused, Endpoint::Other))?;
    let interpolated = api
        .interpolation
        .interpolate(&caller, &document)
        .await
        .map_err(|failure| ApiFailure::of(failure, Endpoint::Other))?;
    Ok(json(StatusCode::OK, interpolated))
}
