//! `GET /api/v1/key-usage`: the number of versions per encryption key.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use keywright_core::encryption_key::KeyUsage;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use crate::{
    Api,
    description::{Described, Tag},
    response::{ApiFailure, Endpoint, rendered},
    route::{Access::Identity, NOT_AUDITED, Route, route},
};

/// The route.
pub(crate) fn route() -> Route {
    route!(GET "/api/v1/key-usage", Identity, NOT_AUDITED, handler, describe)
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "KeyUsage")]
struct KeyUsageResponse {
    /// The number of versions encrypted with the active key.
    active_key: u64,
    /// The number of versions encrypted with other configured keys.
    inactive_keys: u64,
    /// The number of versions encrypted with unknown keys. They can't be read.
    unknown_keys: u64,
}

impl From<KeyUsage> for KeyUsageResponse {
    fn from(usage: KeyUsage) -> Self {
        Self {
            active_key: usage.active_key,
            inactive_keys: usage.inactive_keys,
            unknown_keys: usage.unknown_keys,
        }
    }
}

/// Describes the operation.
fn describe() -> Described {
    let summary = "Counts the stored versions by encryption key";
    Described::new("getKeyUsage", Tag::Operations, summary)
        .answer::<KeyUsageResponse>(200, "The counts.")
        .answered(
            "active",
            json!({"active_key": 8, "inactive_keys": 0, "unknown_keys": 0}),
        )
}

/// Responds with the number of versions by encryption key.
async fn handler(State(api): State<Arc<Api>>) -> Result<Response, ApiFailure> {
    let usage = api
        .encryption_keys
        .usage()
        .await
        .map_err(|failure| ApiFailure::of(failure, Endpoint::Other))?;
    rendered(&KeyUsageResponse::from(usage))
}
