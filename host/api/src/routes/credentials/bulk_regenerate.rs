//! `POST /api/v1/bulk-regenerate`: regenerates everything that an authority signed.

use std::sync::Arc;

use axum::{
    Extension,
    extract::{Request, State},
    response::Response,
};
use keywright_core::{
    authorization::Caller,
    credential::{CredentialName, LookupName, NameMalformed},
};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    Api,
    description::{Described, LookedUpName, Tag},
    request::{BodyRefused, RequestObject, read_json_body},
    response::{ApiFailure, Endpoint, rendered},
};
use serde_json::json;

/// The members of the body.
#[derive(JsonSchema)]
#[schemars(rename = "BulkRegenerateRequest", deny_unknown_fields)]
struct BulkRegenerateRequest {
    /// The name of the authority.
    #[schemars(with = "LookedUpName")]
    signed_by: Option<String>,
}

impl BulkRegenerateRequest {
    fn read(mut members: RequestObject<'_>) -> Result<Self, BodyRefused> {
        let signed_by = members.take_text("signed_by")?;
        members.finish()?;
        Ok(Self { signed_by })
    }

    /// The name of the authority, which must be there. A malformed one is one that signed nothing.
    fn check(self) -> Result<LookupName, BodyRefused> {
        let signed_by = self.signed_by.unwrap_or_default();
        if CredentialName::parse(&signed_by) == Err(NameMalformed::Missing) {
            return Err(BodyRefused::MemberMalformed {
                member: "signed_by",
                expected: "the name of a certificate authority",
            });
        }
        Ok(LookupName::new(&signed_by))
    }
}

/// The names of what was regenerated.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "RegeneratedCredentials")]
struct BulkRegenerateBody<'a> {
    /// Their names, in alphabetical order.
    regenerated_credentials: Vec<&'a str>,
}

/// What the description says of it.
pub(crate) fn describe() -> Described {
    Described::new("bulkRegenerate", Tag::Credentials, "Regenerates everything that an authority signed")
        .text("The certificates that it signed, and what those that are authorities signed, down to the leaves: all of them or none.")
        .body::<BulkRegenerateRequest>()
        .asked("authority", json!({"signed_by": "/demo/root"}))
        .answer::<BulkRegenerateBody<'_>>(200, "What was regenerated; nothing where the authority has signed nothing.")
        .answered("one", json!({"regenerated_credentials": ["/demo/web"]}))
        .fails(400, "The name is missing, or one of the certificates can't be regenerated.")
        .fails(403, "The caller may not write one of the certificates.")
        .fails(404, "The caller may not read the authority, or one of those below it.")
        .fails(413, "The authority has signed more certificates than are written together.")
        .fails(422, "The body has a member that is not known.")
}

/// Regenerates everything that an authority signed.
pub(crate) async fn handler(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Arc<Caller>>,
    request: Request,
) -> Result<Response, ApiFailure> {
    let body = read_json_body(request, &api.limits).await?;
    let signed_by = RequestObject::parse(&body)
        .and_then(BulkRegenerateRequest::read)
        .and_then(BulkRegenerateRequest::check)
        .map_err(|refused| ApiFailure::body(&refused, Endpoint::Other))?;
    let names = api
        .credentials
        .bulk_regenerate(&caller, &signed_by)
        .await
        .map_err(|failure| ApiFailure::of(failure, Endpoint::Other))?;
    rendered(&BulkRegenerateBody {
        regenerated_credentials: names.iter().map(CredentialName::as_str).collect(),
    })
}
