//! `GET /api/v1/data`: versions by name, or a search.

use std::sync::Arc;

use axum::{Extension, extract::State, http::Uri, response::Response};
use keywright_core::{
    Failure,
    authorization::Caller,
    credential::{CredentialVersion, LookupName},
    ports::VersionSelection,
};
use serde::Serialize;

use super::find::{self, FindRequest};
use crate::{
    Api,
    request::{QueryParameters, QueryRefused},
    response::{ApiFailure, Endpoint, VersionBody, rendered},
};

/// Which versions of which credential.
struct GetRequest {
    name: LookupName,
    selection: VersionSelection,
}

impl GetRequest {
    fn read(query: &QueryParameters) -> Result<Self, QueryRefused> {
        let name = LookupName::new(query.required("name")?);
        let is_current = query.boolean("current")?.unwrap_or(false);
        let versions = query.integer("versions")?;
        let selection = match (is_current, versions) {
            (true, Some(_)) => return Err(QueryRefused::Exclusive("current", "versions")),
            (true, None) => VersionSelection::Current,
            (false, None) => VersionSelection::All,
            (false, Some(count)) if count < 0 => {
                return Err(QueryRefused::Malformed {
                    parameter: "versions",
                    expected: "zero or more",
                });
            }
            (false, Some(count)) => {
                VersionSelection::Newest(u32::try_from(count).unwrap_or(u32::MAX))
            }
        };
        Ok(Self { name, selection })
    }
}

#[derive(Serialize)]
struct GetResponse<'a> {
    data: Vec<VersionBody<'a>>,
}

impl<'a> GetResponse<'a> {
    fn of(versions: &'a [CredentialVersion]) -> Result<Self, Failure> {
        let data = versions
            .iter()
            .map(VersionBody::of)
            .collect::<Result<_, _>>()?;
        Ok(Self { data })
    }
}

/// Answers a search when the query has `path` or `name-like`, and with versions by name otherwise.
pub(crate) async fn handler(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Arc<Caller>>,
    uri: Uri,
) -> Result<Response, ApiFailure> {
    let query = QueryParameters::of(&uri);
    if FindRequest::is_asked_for(&query) {
        FindRequest::tell(&caller, &query);
        return find::answer(&api, &caller, FindRequest::read(&query)?).await;
    }
    let request = GetRequest::read(&query)?;
    let failed = |failure| ApiFailure::of(failure, Endpoint::Other);
    let versions = match request.selection {
        VersionSelection::Newest(0) => return Err(failed(Failure::NotFound)),
        selection => {
            api.credentials
                .by_name(&caller, &request.name, selection)
                .await
        }
    }
    .map_err(failed)?;
    rendered(&GetResponse::of(&versions).map_err(failed)?)
}
