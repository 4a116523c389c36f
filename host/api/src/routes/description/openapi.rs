//! `GET /openapi.json`: the API's description.

use axum::{http::header::CONTENT_TYPE, response::IntoResponse};
use serde_json::{Map, Value};

use crate::{
    description::{self, Described, Tag},
    response::JSON_MEDIA_TYPE,
    route::{Access::Open, NOT_AUDITED, Route, route},
};

/// The route.
pub(crate) fn route() -> Route {
    route!(GET "/openapi.json", Open, NOT_AUDITED, handler, describe)
}

/// Describes the operation.
fn describe() -> Described {
    let summary = "Returns the API description, for programs";
    Described::new("getDescription", Tag::Operations, summary)
        .text("The same for all servers of a release. `GET /api/v1/types` returns the types configured on this server.")
        .answer::<Map<String, Value>>(200, "The description, in OpenAPI 3.1.")
}

/// Responds with the description.
async fn handler() -> impl IntoResponse {
    ([(CONTENT_TYPE, JSON_MEDIA_TYPE)], description::document())
}
