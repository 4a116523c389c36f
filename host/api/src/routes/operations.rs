//! Operations of the server itself: the URL of the identity provider, the API level, and the use of encryption keys.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use crate::{
    Api,
    response::{ApiError, rendered},
    route::{
        Access::{Identity, Open},
        NOT_AUDITED, Route, route,
    },
};

pub(crate) fn info_route() -> Route {
    route!(GET "/info", Open, NOT_AUDITED, info,
        "getInformation", Operations, "Returns the URL of the identity provider")
    .response::<InfoResponse<'_>>(
        200,
        "The URL of the identity provider, and the configured name of this service.",
    )
    .response_example(
        "development",
        json!({
            "auth-server": {"url": "https://127.0.0.1:8844/identity"},
            "app": {"name": "Keywright"},
        }),
    )
}

pub(crate) fn version_route() -> Route {
    route!(GET "/version", Identity, NOT_AUDITED, version,
        "getVersion", Operations, "Returns the API level")
        .text("The API level is the version of the CredHub API that this server supports. Clients use it to select features. The header `Server` contains the version of Keywright.")
        .response::<VersionResponse<'_>>(200, "The API level.")
        .response_example("version", json!({"version": "2.15.0"}))
}

pub(crate) fn key_usage_route() -> Route {
    route!(GET "/api/v1/key-usage", Identity, NOT_AUDITED, key_usage,
        "getKeyUsage", Operations, "Counts the stored credential versions by encryption key")
        .text("A rotation of the encryption key is complete when no version is encrypted with the old key.")
        .response::<KeyUsageResponse>(200, "The number of versions encrypted with the active key, with inactive keys, and with unknown keys.")
        .response_example(
            "active",
            json!({"active_key": 8, "inactive_keys": 0, "unknown_keys": 0}),
        )
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

async fn info(State(api): State<Arc<Api>>) -> Result<Response, ApiError> {
    rendered(&InfoResponse {
        identity_provider: IdentityProviderBody {
            url: &api.information.identity_provider_url,
        },
        app: ApplicationBody {
            name: &api.information.application_name,
        },
    })
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ServerVersion")]
struct VersionResponse<'a> {
    version: &'a str,
}

async fn version(State(api): State<Arc<Api>>) -> Result<Response, ApiError> {
    rendered(&VersionResponse {
        version: &api.information.api_level,
    })
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "KeyUsage")]
struct KeyUsageResponse {
    /// The number of versions encrypted with the active key.
    active_key: u64,
    /// The number of versions encrypted with other configured keys.
    inactive_keys: u64,
    /// The number of versions encrypted with keys that are not configured. These versions can't be read.
    unknown_keys: u64,
}

async fn key_usage(State(api): State<Arc<Api>>) -> Result<Response, ApiError> {
    let usage = api.encryption_keys.usage().await?;
    rendered(&KeyUsageResponse {
        active_key: usage.active_key,
        inactive_keys: usage.inactive_keys,
        unknown_keys: usage.unknown_keys,
    })
}
