//! `POST /api/v1/regenerate`: regenerates a credential.

use std::sync::Arc;

use axum::{
    Extension,
    extract::{Request, State},
    response::Response,
};
use keywright_core::{
    Failure,
    authorization::Caller,
    credential::{CredentialName, LookupName, Metadata, NameMalformed, Regenerate},
};
use serde_json::Value;

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

    fn check(self, endpoint: Endpoint) -> Result<Regenerate, Failure> {
        let name = self.name.unwrap_or_default();
        let name = match CredentialName::parse(&name) {
            Ok(name) => name.lookup(),
            // Only the data endpoint refuses malformed names; here such a name is one that is not there.
            Err(malformed)
                if endpoint == Endpoint::Regenerate && malformed != NameMalformed::Missing =>
            {
                LookupName::new(&name)
            }
            Err(malformed) => return Err(malformed.into()),
        };
        Ok(Regenerate {
            name,
            metadata: Metadata::parse(&self.metadata)?,
        })
    }
}

/// Regenerates a credential.
pub(crate) async fn handler(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Arc<Caller>>,
    request: Request,
) -> Result<Response, ApiFailure> {
    let body = read_json_body(request, &api.limits).await?;
    let request = RequestObject::parse(&body)
        .and_then(RegenerateRequest::read)
        .map_err(|refused| ApiFailure::body(&refused, Endpoint::Regenerate))?;
    answer(&api, &caller, request, Endpoint::Regenerate).await
}

/// Regenerates what a body of either endpoint names.
pub(super) async fn answer(
    api: &Api,
    caller: &Caller,
    request: RegenerateRequest,
    endpoint: Endpoint,
) -> Result<Response, ApiFailure> {
    let failed = |failure| ApiFailure::of(failure, endpoint);
    let regenerate = request.check(endpoint).map_err(failed)?;
    let written = api
        .credentials
        .regenerate(caller, regenerate)
        .await
        .map_err(failed)?;
    rendered(&VersionBody::of_written(&written).map_err(failed)?)
}
