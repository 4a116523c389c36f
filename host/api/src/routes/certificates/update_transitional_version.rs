//! `PUT /api/v1/certificates/{certificate_id}/update_transitional_version`: moves the transitional flag.

use std::sync::Arc;

use axum::{
    Extension,
    extract::{Path, Request, State, rejection::PathRejection},
    response::Response,
};
use keywright_core::{authorization::Caller, ports::TransitionalVersion};
use uuid::Uuid;

use super::{failed, ids, many};
use crate::{
    Api,
    request::{BodyRefused, RequestObject, read_json_body},
    response::{ApiFailure, Endpoint},
};

/// Where the flag goes.
struct UpdateTransitionalVersionRequest {
    to: TransitionalVersion,
}

impl UpdateTransitionalVersionRequest {
    fn read(body: &[u8]) -> Result<Self, BodyRefused> {
        let mut members = RequestObject::parse(body)?;
        let version = members.take_present_text("version")?;
        members.finish()?;
        let to = match version.as_deref() {
            None => TransitionalVersion::None,
            Some("latest") => TransitionalVersion::Latest,
            Some(id) => {
                TransitionalVersion::Id(id.parse().map_err(|_| BodyRefused::MemberMalformed {
                    member: "version",
                    expected: "the id of a version, \"latest\" or null",
                })?)
            }
        };
        Ok(Self { to })
    }
}

/// Moves the flag and answers with the current versions.
pub(crate) async fn handler(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Arc<Caller>>,
    certificate_id: Result<Path<Uuid>, PathRejection>,
    request: Request,
) -> Result<Response, ApiFailure> {
    let body = read_json_body(request, &api.limits).await?;
    let request = UpdateTransitionalVersionRequest::read(&body)
        .map_err(|refused| ApiFailure::body(&refused, Endpoint::Other))?;
    let versions = api
        .credentials
        .move_transitional_version(&caller, ids(certificate_id)?, request.to)
        .await
        .map_err(failed)?;
    many(&versions)
}
