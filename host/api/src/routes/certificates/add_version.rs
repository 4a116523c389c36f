//! `POST /api/v1/certificates/{certificate_id}/versions`: adds a version that the caller brings.

use std::sync::Arc;

use axum::{
    Extension,
    extract::{Path, Request, State, rejection::PathRejection},
    response::Response,
};
use keywright_core::{Failure, Secret, authorization::Caller, credential::NewCertificateVersion};
use uuid::Uuid;

use super::{failed, ids, one};
use crate::{
    Api,
    request::{BodyRefused, RequestObject, read_json_body},
    response::{ApiFailure, Endpoint},
};

/// The members of the body, each of its kind.
struct AddVersionRequest {
    value: Option<Secret>,
    is_transitional: bool,
}

impl AddVersionRequest {
    fn read(body: &[u8]) -> Result<Self, BodyRefused> {
        let mut members = RequestObject::parse(body)?;
        let request = Self {
            value: members.take_secret("value"),
            is_transitional: members.take_boolean("transitional")?.unwrap_or(false),
        };
        members.finish()?;
        Ok(request)
    }

    fn check(self, certificate_id: Uuid) -> Result<NewCertificateVersion, Failure> {
        Ok(NewCertificateVersion {
            certificate_id,
            value: self
                .value
                .ok_or_else(|| Failure::ValueRefused("value is required".to_owned()))?,
            is_transitional: self.is_transitional,
        })
    }
}

/// Adds a version.
pub(crate) async fn handler(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Arc<Caller>>,
    certificate_id: Result<Path<Uuid>, PathRejection>,
    request: Request,
) -> Result<Response, ApiFailure> {
    let body = read_json_body(request, &api.limits).await?;
    let new = AddVersionRequest::read(&body)
        .map_err(|refused| ApiFailure::body(&refused, Endpoint::Other))?
        .check(ids(certificate_id)?)
        .map_err(failed)?;
    let version = api
        .credentials
        .add_certificate_version(&caller, new)
        .await
        .map_err(failed)?;
    one(&version)
}
