//! `POST /api/v1/certificates/{certificate_id}/regenerate`: regenerates a certificate.

use std::sync::Arc;

use axum::{
    Extension,
    extract::{Path, Request, State, rejection::PathRejection},
    response::Response,
};
use keywright_core::{
    authorization::Caller,
    credential::{Metadata, MetadataTooLong, RegenerateCertificate, TransitionalParent},
};
use serde_json::Value;
use uuid::Uuid;

use super::ids;
use crate::{
    Api,
    request::{BodyRefused, RequestObject, read_optional_json_body},
    response::{ApiFailure, Endpoint, VersionBody, rendered},
};

/// The members of the body, each of its kind; all of them may be left out, and the body with them.
#[derive(Default)]
struct RegenerateRequest {
    is_transitional: bool,
    may_transitional_parent_sign: bool,
    key_length: Value,
    duration: Value,
    metadata: Value,
}

impl RegenerateRequest {
    fn read(body: &[u8]) -> Result<Self, BodyRefused> {
        let mut members = RequestObject::parse(body)?;
        let request = Self {
            is_transitional: members
                .take_boolean("set_as_transitional")?
                .unwrap_or(false),
            may_transitional_parent_sign: members
                .take_boolean("allow_transitional_parent_to_sign")?
                .unwrap_or(false),
            key_length: members.take_json("key_length")?,
            duration: members.take_json("duration")?,
            metadata: members.take_json("metadata")?,
        };
        members.finish()?;
        Ok(request)
    }

    fn check(self, certificate_id: Uuid) -> Result<RegenerateCertificate, MetadataTooLong> {
        Ok(RegenerateCertificate {
            certificate_id,
            is_transitional: self.is_transitional,
            transitional_parent: if self.may_transitional_parent_sign {
                TransitionalParent::MaySign
            } else {
                TransitionalParent::MayNotSign
            },
            key_length: Some(self.key_length).filter(|value| !value.is_null()),
            duration: Some(self.duration).filter(|value| !value.is_null()),
            metadata: Metadata::parse(&self.metadata)?,
        })
    }
}

/// Regenerates a certificate.
pub(crate) async fn handler(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Arc<Caller>>,
    certificate_id: Result<Path<Uuid>, PathRejection>,
    request: Request,
) -> Result<Response, ApiFailure> {
    let failed = |failure| ApiFailure::of(failure, Endpoint::Regenerate);
    let request = match read_optional_json_body(request, &api.limits).await? {
        Some(body) => RegenerateRequest::read(&body)
            .map_err(|refused| ApiFailure::body(&refused, Endpoint::Regenerate))?,
        None => RegenerateRequest::default(),
    };
    let regenerate = request
        .check(ids(certificate_id)?)
        .map_err(|long| failed(long.into()))?;
    let written = api
        .credentials
        .regenerate_certificate(&caller, regenerate)
        .await
        .map_err(failed)?;
    rendered(&VersionBody::of_written(&written).map_err(failed)?)
}
