//! `GET /info`: where to log in.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use crate::{
    Api,
    description::{Described, Tag},
    response::{ApiFailure, rendered},
    route::{Access::Open, NOT_AUDITED, Route, route},
};

/// The route.
pub(crate) fn route() -> Route {
    route!(GET "/info", Open, NOT_AUDITED, handler, describe)
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Information")]
struct InfoResponse<'a> {
    #[serde(rename = "auth-server")]
    identity_provider: IdentityProviderBody<'a>,
    app: ApplicationBody<'a>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct IdentityProviderBody<'a> {
    url: &'a str,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct ApplicationBody<'a> {
    name: &'a str,
}

/// Describes the operation.
fn describe() -> Described {
    Described::new("getInformation", Tag::Operations, "Returns where to log in")
        .answer::<InfoResponse<'_>>(
            200,
            "The URL of the identity provider, and the name of the service.",
        )
        .answered(
            "development",
            json!({
                "auth-server": {"url": "https://127.0.0.1:8844/identity"},
                "app": {"name": "Keywright"},
            }),
        )
}

/// Responds with the URL of the identity provider and the name of the service.
async fn handler(State(api): State<Arc<Api>>) -> Result<Response, ApiFailure> {
    rendered(&InfoResponse {
        identity_provider: IdentityProviderBody {
            url: &api.information.identity_provider_url,
        },
        app: ApplicationBody {
            name: &api.information.application_name,
        },
    })
}
