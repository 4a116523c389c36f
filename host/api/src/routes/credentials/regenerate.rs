//! `POST /api/v1/regenerate`: regenerates a credential.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    response::Response,
};
use keywright_core::{
    Failure,
    credential::{Metadata, Regenerate},
};
use serde_json::Value;

use super::required_name;
use crate::{
    Api,
    request::{BodyRefused, RequestObject, read_json_body},
    response::{ApiFailure, Endpoint, VersionBody, rendered},
};

/// The members of the body, each of its kind.
pub(super) struct RegenerateRequest {
    name: Option<String>,
    metadata: Value,
}

impl RegenerateRequest {
    /// Takes what there is to take of a body.
    pub(super) fn read(mut members: RequestObject<'_>) -> Result<Self, BodyRefused> {
        let request = Self {
            name: members.take_text("name")?,
            metadata: members.take_json("metadata")?,
        };
        members.finish()?;
        Ok(request)
    }

    fn check(self) -> Result<Regenerate, Failure> {
        Ok(Regenerate {
            name: required_name(self.name)?.lookup(),
            metadata: Metadata::parse(&self.metadata)?,
        })
    }
}

/// Regenerates a credential.
pub(crate) async fn handler(
    State(api): State<Arc<Api>>,
    request: Request,
) -> Result<Response, ApiFailure> {
    let body = read_json_body(request, &api.limits).await?;
    let request = RequestObject::parse(&body)
        .and_then(RegenerateRequest::read)
        .map_err(|refused| ApiFailure::body(&refused, Endpoint::Regenerate))?;
    answer(&api, request, Endpoint::Regenerate).await
}

/// Regenerates what a body of either endpoint names.
pub(super) async fn answer(
    api: &Api,
    request: RegenerateRequest,
    endpoint: Endpoint,
) -> Result<Response, ApiFailure> {
    let failed = |failure| ApiFailure::of(failure, endpoint);
    let regenerate = request.check().map_err(failed)?;
    let written = api
        .credentials
        .regenerate(regenerate)
        .await
        .map_err(failed)?;
    rendered(&VersionBody::of_written(&written).map_err(failed)?)
}
