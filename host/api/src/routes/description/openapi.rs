//! `GET /openapi.json`: the API's description.

use axum::{http::header::CONTENT_TYPE, response::IntoResponse};
use serde_json::{Map, Value};

use crate::{
    description::{self, Described, Tag},
    response::JSON_MEDIA_TYPE,
};

/// What the description says of it.
pub(crate) fn describe() -> Described {
    let summary = "Describes the API, for programs";
    Described::new("getDescription", Tag::Operations, summary)
        .text("It is the same for all servers of one release. `GET /api/v1/types` tells how this one is configured.")
        .answer::<Map<String, Value>>(200, "The description, in OpenAPI 3.1.")
}

/// Answers with the description.
pub(crate) async fn handler() -> impl IntoResponse {
    ([(CONTENT_TYPE, JSON_MEDIA_TYPE)], description::document())
}
