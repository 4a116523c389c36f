//! `GET /docs`: the API's description as a page.

use axum::{
    http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, REFERRER_POLICY},
    response::IntoResponse,
};

use crate::{
    description::{self, Described, Tag},
    route::{Access::Open, NOT_AUDITED, Route, route},
};

/// The route.
pub(crate) fn route() -> Route {
    route!(GET "/docs", Open, NOT_AUDITED, handler, describe)
}

/// Describes the operation.
fn describe() -> Described {
    let summary = "Returns the API reference, for people";
    Described::new("getReference", Tag::Operations, summary)
        .text("The page has no scripts and loads no other resources.")
        .answer_in::<String>(200, "The description as a page.", "text/html")
}

/// Responds with the page.
async fn handler() -> impl IntoResponse {
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
