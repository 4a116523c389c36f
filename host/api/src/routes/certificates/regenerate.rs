//! `POST /api/v1/certificates/{certificate_id}/regenerate`: regenerates a certificate.

use axum::response::Response;
use keywright_core::{
    credential::{MetadataError, RegenerateCertificate, TransitionalParent},
    permission::Operation::Write,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use uuid::Uuid;

use crate::{
    description::{LenientBoolean, LenientInteger, Version, example},
    request::{Metadata, StrictJson},
    response::{ApiError, Endpoint, VersionBody, rendered},
    route::{Access::Permission, Call, PathIds, Route, route},
};

pub(crate) fn route() -> Route {
    route!(POST "/api/v1/certificates/{certificate_id}/regenerate", Permission(Write), "REGENERATE_CERTIFICATE", handler,
        "regenerateCertificate", Certificates, "Regenerates a certificate",
        400 => "The certificate can't be regenerated or already has a transitional version, or a parameter is invalid.",
        403 => "The caller may not write the certificate.",
        404 => "The certificate or its CA does not exist.",
        413 => "The metadata is too long.",
        422 => "The body has an unknown field.")
        .optional_body::<RegenerateRequest>()
        .request_example("transitional", json!({"set_as_transitional": true}))
        .response::<Version>(200, "The added version.")
        .response_example("transitional", example::certificate_version())
}

/// Options for regenerating a certificate. The body and all its fields are optional.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(rename = "RegenerateCertificateRequest", deny_unknown_fields, default)]
struct RegenerateRequest {
    /// Whether the new version is transitional (trusted, but not used to sign).
    #[schemars(with = "LenientBoolean")]
    set_as_transitional: bool,
    /// Whether the transitional version of the CA signs if it is newer than the active version.
    #[schemars(with = "LenientBoolean")]
    allow_transitional_parent_to_sign: bool,
    /// The length of the new RSA key, in bits. Defaults to the length of the active version's key.
    #[schemars(with = "Option<LenientInteger>")]
    key_length: Option<i64>,
    /// The validity in days, from 1 to 3650. Defaults to the validity of the active version.
    #[schemars(with = "Option<LenientInteger>")]
    duration: Option<i64>,
    /// The metadata of the new version.
    metadata: Metadata,
}

impl RegenerateRequest {
    fn check(self, certificate_id: Uuid) -> Result<RegenerateCertificate, MetadataError> {
        Ok(RegenerateCertificate {
            certificate_id,
            is_transitional: self.set_as_transitional,
            transitional_parent: if self.allow_transitional_parent_to_sign {
                TransitionalParent::MaySign
            } else {
                TransitionalParent::MayNotSign
            },
            key_length: self.key_length,
            duration: self.duration,
            metadata: self.metadata.parse()?,
        })
    }
}

async fn handler(
    Call { api, caller }: Call,
    PathIds([certificate_id]): PathIds<1>,
    request: Option<StrictJson<RegenerateRequest>>,
) -> Result<Response, ApiError> {
    let failed = |failure| ApiError::of(failure, Endpoint::Regenerate);
    let StrictJson(request) = request.unwrap_or_default();
    let regenerate = request
        .check(certificate_id)
        .map_err(|long| failed(long.into()))?;
    let written = api
        .credentials
        .regenerate
        .certificate(&caller, regenerate)
        .await
        .map_err(failed)?;
    rendered(&VersionBody::of_written(&written)?)
}
