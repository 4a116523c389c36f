//! `GET /api/v1/data` with `path` or `name-like`: a search.

use axum::response::Response;
use keywright_core::credential::{FindNames, FoundCredential};
use serde::Serialize;

use crate::{
    Api,
    request::{QueryParameters, QueryRefused},
    response::{ApiFailure, Endpoint, rendered, timestamp},
};

/// What to search for.
pub(super) struct FindRequest {
    names: FindNames,
    expires_within_days: Option<i64>,
}

impl FindRequest {
    /// Reads a search, when the query asks for one: it does so whether or not it also has a name.
    pub(super) fn read(query: &QueryParameters) -> Result<Option<Self>, QueryRefused> {
        let names = match (query.text("path")?, query.text("name-like")?) {
            (None, None) => return Ok(None),
            (Some(_), Some(_)) => return Err(QueryRefused::Exclusive("path", "name-like")),
            (Some(path), None) => FindNames::below(path),
            (None, Some(part)) => FindNames::containing(part),
        };
        Ok(Some(Self {
            names,
            expires_within_days: query.integer("expires-within-days")?,
        }))
    }
}

#[derive(Serialize)]
struct FindResponse<'a> {
    credentials: Vec<FoundBody<'a>>,
}

#[derive(Serialize)]
struct FoundBody<'a> {
    name: &'a str,
    version_created_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    expiry_date: Option<String>,
}

impl<'a> FoundBody<'a> {
    fn of(found: &'a FoundCredential) -> Self {
        Self {
            name: found.name.as_str(),
            version_created_at: timestamp(found.version_created_at),
            expiry_date: found.expires_at.map(timestamp),
        }
    }
}

/// Answers a search.
pub(super) async fn answer(api: &Api, request: FindRequest) -> Result<Response, ApiFailure> {
    let found = api
        .credentials
        .find(request.names, request.expires_within_days)
        .await
        .map_err(|failure| ApiFailure::of(failure, Endpoint::Other))?;
    rendered(&FindResponse {
        credentials: found.iter().map(FoundBody::of).collect(),
    })
}
