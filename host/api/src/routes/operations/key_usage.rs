//! `GET /api/v1/key-usage`: how much is encrypted by which keys.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use keywright_core::encryption_key::KeyUsage;
use serde::Serialize;

use crate::{
    Api,
    response::{ApiFailure, Endpoint, rendered},
};

#[derive(Serialize)]
struct KeyUsageResponse {
    active_key: u64,
    inactive_keys: u64,
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

/// Answers with the number of versions by the key that encrypts them.
pub(crate) async fn handler(State(api): State<Arc<Api>>) -> Result<Response, ApiFailure> {
    let usage = api
        .encryption_keys
        .usage()
        .await
        .map_err(|failure| ApiFailure::of(failure, Endpoint::Other))?;
    rendered(&KeyUsageResponse::from(usage))
}
