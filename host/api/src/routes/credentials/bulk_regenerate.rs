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
use serde::Serialize;

use crate::{
    Api,
    request::{BodyRefused, RequestObject, read_json_body},
    response::{ApiFailure, Endpoint, rendered},
};

/// The name of the authority in a body, which must be there. A malformed one is one that signed nothing.
fn read_signed_by(mut members: RequestObject<'_>) -> Result<LookupName, BodyRefused> {
    let signed_by = members.take_text("signed_by")?.unwrap_or_default();
    members.finish()?;
    if CredentialName::parse(&signed_by) == Err(NameMalformed::Missing) {
        return Err(BodyRefused::MemberMalformed {
            member: "signed_by",
            expected: "the name of a certificate authority",
        });
    }
    Ok(LookupName::new(&signed_by))
}

/// The names of what was regenerated.
#[derive(Serialize)]
struct BulkRegenerateBody<'a> {
    regenerated_credentials: Vec<&'a str>,
}

/// Regenerates everything that an authority signed.
pub(crate) async fn handler(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Arc<Caller>>,
    request: Request,
) -> Result<Response, ApiFailure> {
    let body = read_json_body(request, &api.limits).await?;
    let signed_by = RequestObject::parse(&body)
        .and_then(read_signed_by)
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
