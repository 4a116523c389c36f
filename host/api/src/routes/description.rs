//! The description of the API: `GET /openapi.json` for programs, and `GET /docs` for people.
//!
//! Both need no authentication, because they only reveal the release. They work in read-only mode, and are not audited.

use axum::{
    http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, REFERRER_POLICY},
    response::IntoResponse,
};
use serde_json::{Map, Value};

use crate::{
    description,
    response::JSON_MEDIA_TYPE,
    route::{Access::Open, NOT_AUDITED, Route, route},
};

pub(crate) fn openapi_route() -> Route {
    route!(GET "/openapi.json", Open, NOT_AUDITED, openapi,
        "getDescription", Operations, "Returns the API description, for programs")
        .text("All servers of a release return the same description. `GET /api/v1/types` returns the types configured on this server.")
        .response::<Map<String, Value>>(200, "The description, in OpenAPI 3.1.")
}

pub(crate) fn reference_route() -> Route {
    route!(GET "/docs", Open, NOT_AUDITED, reference,
        "getReference", Operations, "Returns the API reference, for people")
    .text("The page has no scripts and loads no other resources.")
    .response_in::<String>(200, "The reference, as HTML.", "text/html")
}

async fn openapi() -> impl IntoResponse {
    ([(CONTENT_TYPE, JSON_MEDIA_TYPE)], description::document())
}

async fn reference() -> impl IntoResponse {
    let headers: [(HeaderName, &'static str); 3] = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (
            CONTENT_SECURITY_POLICY,
            description::content_security_policy(),
        ),
        (REFERRER_POLICY, "no-referrer"),
    ];
    (headers, description::page())
}
