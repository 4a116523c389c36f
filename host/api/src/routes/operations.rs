//! Operations of the server itself: the URL of the identity provider, the API level, the use of encryption keys, and the
//! description of the API.
//!
//! `/openapi.json` and `/docs` need no authentication, because they only reveal the release.

use std::sync::Arc;

use axum::{
    extract::State,
    http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, REFERRER_POLICY},
    response::{IntoResponse, Response},
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::{
    Api, description,
    response::{ApiError, JSON_MEDIA_TYPE, rendered},
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

pub(crate) fn openapi_route() -> Route {
    route!(GET "/openapi.json", Open, NOT_AUDITED, openapi,
        "getDescription", Operations, "Returns the API description, for programs")
        .text("All servers of a release return the same description. `GET /api/v1/types` returns the types configured on this server.")
        .response::<Map<String, Value>>(200, "The description, in OpenAPI 3.1.")
}

pub(crate) fn reference_route(path: &'static str) -> Route {
    route!(GET path, Open, NOT_AUDITED, reference,
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
