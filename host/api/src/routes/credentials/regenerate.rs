//! `POST /api/v1/regenerate`: regenerates a credential.

use std::sync::Arc;

use axum::{
    Extension,
    extract::{Request, State},
    response::Response,
};
use keywright_core::{
    Failure, Secret,
    authorization::Caller,
    credential::{self, CredentialName, LookupName, NameMalformed, Regenerate},
    permission::Operation::Write,
};
use schemars::JsonSchema;
use serde_json::json;

use crate::{
    Api,
    description::{Described, LookedUpName, Metadata, Tag, Version, example},
    request::{BodyRefused, RequestObject, read_json_body},
    response::{ApiFailure, Endpoint, VersionBody, rendered},
    route::{Access::Permission, Route, route},
};

/// The route.
pub(crate) fn route() -> Route {
    route!(POST "/api/v1/regenerate", Permission(Write), "REGENERATE", handler, describe)
}

/// The fields of the body.
#[derive(JsonSchema)]
#[schemars(rename = "RegenerateRequest", deny_unknown_fields)]
pub(super) struct RegenerateRequest {
    /// The credential's name.
    #[schemars(with = "LookedUpName")]
    name: Option<String>,
    /// The metadata of the new version.
    #[schemars(default, with = "Metadata")]
    metadata: Option<Secret>,
}

impl RegenerateRequest {
    /// Takes the fields from a body.
    pub(super) fn read(mut members: RequestObject<'_>) -> Result<Self, BodyRefused> {
        let request = Self {
            name: members.take_text("name")?,
            metadata: members.take_secret("metadata"),
        };
        members.finish()?;
        Ok(request)
    }

    fn check(self, endpoint: Endpoint) -> Result<Regenerate, Failure> {
        let name = self.name.unwrap_or_default();
        let name = match CredentialName::parse(&name) {
            Ok(name) => name.lookup(),
            // Only the data endpoint rejects malformed names; here they match no credential.
            Err(malformed)
                if endpoint == Endpoint::Regenerate && malformed != NameMalformed::Missing =>
            {
                LookupName::new(&name)
            }
            Err(malformed) => return Err(malformed.into()),
        };
        Ok(Regenerate {
            name,
            metadata: self.metadata.map(credential::Metadata::parse).transpose()?,
        })
    }
}

/// Describes the operation.
fn describe() -> Described {
    Described::new("regenerateCredential", Tag::Credentials, "Regenerates a credential")
        .text("Adds a version with the parameters of the newest one. RSA and SSH keys can always be regenerated; passwords and \
            users only if they were generated; certificates if they were generated, are self-signed or were signed by a stored CA.")
        .body::<RegenerateRequest>()
        .asked("password", json!({"name": "/demo/password"}))
        .answer::<Version>(200, "The added version.")
        .answered("password", example::password_version())
        .fails(400, "The credential can't be regenerated, or its name is missing.")
        .fails(403, "The caller may not write the credential.")
        .fails(404, "The credential does not exist, or the caller may not read the CA that signed it.")
        .fails(413, "The metadata is too long.")
        .fails(422, "The body has an unknown field.")
}

/// Regenerates a credential.
async fn handler(
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

/// Regenerates the credential in a body of either endpoint.
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
