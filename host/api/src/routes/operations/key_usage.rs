//! `GET /api/v1/key-usage`: how much is encrypted by which keys.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use keywright_core::encryption_key::KeyUsage;
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    Api,
    description::{Described, Tag},
    response::{ApiFailure, Endpoint, rendered},
};
use serde_json::json;

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "KeyUsage")]
struct KeyUsageResponse {
    /// How many versions are encrypted with the key that encrypts new ones.
    active_key: u64,
    /// How many are encrypted with other keys that the server has.
    inactive_keys: u64,
    /// How many are encrypted with keys that it does not have, and can't be read.
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

/// What the description says of it.
pub(crate) fn describe() -> Described {
    let summary = "Counts the stored versions by the key that encrypts them";
    Described::new("getKeyUsage", Tag::Operations, summary)
        .answer::<KeyUsageResponse>(200, "The counts.")
        .answered(
            "active",
            json!({"active_key": 8, "inactive_keys": 0, "unknown_keys": 0}),
        )
}

/// Answers with the number of versions by the key that encrypts them.
pub(crate) async fn handler(State(api): State<Arc<Api>>) -> Result<Response, ApiFailure> {
    let usage = api
        .encryption_keys
        .usage()
        .await
        .map_err(|failure| ApiFailure::of(failure, Endpoint::Other))?;
    rendered(&KeyUsageResponse::from(usage))
}
