//! `GET /info`: where to log in.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use serde::Serialize;

use crate::{
    Api,
    response::{ApiFailure, rendered},
};

#[derive(Serialize)]
struct InfoResponse<'a> {
    #[serde(rename = "auth-server")]
    identity_provider: IdentityProviderBody<'a>,
    app: ApplicationBody<'a>,
}

#[derive(Serialize)]
struct IdentityProviderBody<'a> {
    url: &'a str,
}

#[derive(Serialize)]
struct ApplicationBody<'a> {
    name: &'a str,
}

/// Answers with the address of the identity provider and the application's name.
pub(crate) async fn handler(State(api): State<Arc<Api>>) -> Result<Response, ApiFailure> {
    rendered(&InfoResponse {
        identity_provider: IdentityProviderBody {
            url: &api.information.identity_provider_url,
        },
        app: ApplicationBody {
            name: &api.information.application_name,
        },
    })
}
