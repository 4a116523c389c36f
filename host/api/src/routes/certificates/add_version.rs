//! `POST /api/v1/certificates/{certificate_id}/versions`: adds a version from the request.

use std::sync::Arc;

use axum::{
    Extension,
    extract::{Request, State},
    response::Response,
};
use keywright_core::{
    Failure, Secret, authorization::Caller, credential::NewCertificateVersion,
    permission::Operation::Write,
};
use schemars::JsonSchema;
use serde_json::json;
use uuid::Uuid;

use super::{failed, id, one};
use crate::{
    Api,
    description::{Described, LenientBoolean, SetCertificate, Tag, Version, example},
    request::{BodyRefused, RequestObject, read_json_body},
    response::{ApiFailure, Endpoint},
    route::{Access::Permission, PathIds, Route, route},
};

/// The route.
pub(crate) fn route() -> Route {
    route!(POST "/api/v1/certificates/{certificate_id}/versions", Permission(Write), "ADD_CERTIFICATE_VERSION", handler, describe)
}

/// The members of the body, each of its kind.
#[derive(JsonSchema)]
#[schemars(rename = "AddCertificateVersionRequest", deny_unknown_fields)]
struct AddVersionRequest {
    /// The certificate; `ca_name` need not be there.
    #[schemars(with = "SetCertificate")]
    value: Option<Secret>,
    /// Whether the new version is transitional.
    #[schemars(rename = "transitional", default, with = "LenientBoolean")]
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

/// Describes the operation.
fn describe() -> Described {
    Described::new(
        "addCertificateVersion",
        Tag::Certificates,
        "Adds a version that the caller brings",
    )
    .body::<AddVersionRequest>()
    .asked(
        "transitional",
        json!({"value": {"certificate": example::CERTIFICATE}, "transitional": true}),
    )
    .answer::<Version>(200, "The version that was added.")
    .answered("transitional", example::certificate_version())
    .fails(
        400,
        "The certificate breaks a rule, or there is a transitional version already.",
    )
    .fails(403, "The caller may not write the certificate.")
    .fails(
        404,
        "There is no such certificate, or no such authority as `ca_name` names.",
    )
    .fails(413, "The value is too large.")
    .fails(422, "The body or the value has a member that is not known.")
}

/// Adds a version.
async fn handler(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Arc<Caller>>,
    certificate_id: PathIds<1>,
    request: Request,
) -> Result<Response, ApiFailure> {
    let body = read_json_body(request, &api.limits).await?;
    let new = AddVersionRequest::read(&body)
        .map_err(|refused| ApiFailure::body(&refused, Endpoint::Other))?
        .check(id(certificate_id)?)
        .map_err(failed)?;
    let version = api
        .credentials
        .add_certificate_version(&caller, new)
        .await
        .map_err(failed)?;
    one(&version)
}
