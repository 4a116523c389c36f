//! `POST /api/v1/certificates/{certificate_id}/regenerate`: regenerates a certificate.

use std::sync::Arc;

use axum::{
    Extension,
    extract::{Request, State},
    response::Response,
};
use keywright_core::{
    Secret,
    authorization::Caller,
    credential::{self, MetadataError, RegenerateCertificate, TransitionalParent},
    permission::Operation::Write,
};
use schemars::JsonSchema;
use serde_json::json;
use uuid::Uuid;

use super::id;
use crate::{
    Api,
    description::{Description, LenientBoolean, Metadata, Tag, Version, example},
    request::{BodyError, RequestObject, read_optional_json_body},
    response::{ApiError, Endpoint, VersionBody, rendered},
    route::{Access::Permission, PathIds, Route, route},
};

pub(crate) fn route() -> Route {
    route!(POST "/api/v1/certificates/{certificate_id}/regenerate", Permission(Write), "REGENERATE_CERTIFICATE", handler, describe)
}

/// Options for regenerating a certificate. The body and all its fields are optional.
#[derive(Default, JsonSchema)]
#[schemars(rename = "RegenerateCertificateRequest", deny_unknown_fields)]
struct RegenerateRequest {
    /// Whether the new version is transitional (trusted, but not used to sign).
    #[schemars(rename = "set_as_transitional", default, with = "LenientBoolean")]
    is_transitional: bool,
    /// Whether the transitional version of the CA signs if it is newer than the active version.
    #[schemars(
        rename = "allow_transitional_parent_to_sign",
        default,
        with = "LenientBoolean"
    )]
    may_transitional_parent_sign: bool,
    /// The length of the new RSA key, in bits. Defaults to the length of the current key.
    #[schemars(default, with = "Option<u32>")]
    key_length: Option<i64>,
    /// The validity in days. Defaults to the validity of the current version.
    #[schemars(default, with = "Option<u32>")]
    duration: Option<i64>,
    /// The metadata of the new version.
    #[schemars(default, with = "Metadata")]
    metadata: Option<Secret>,
}

impl RegenerateRequest {
    fn read(mut fields: RequestObject<'_>) -> Result<Self, BodyError> {
        let request = Self {
            is_transitional: fields.take_boolean("set_as_transitional")?.unwrap_or(false),
            may_transitional_parent_sign: fields
                .take_boolean("allow_transitional_parent_to_sign")?
                .unwrap_or(false),
            key_length: fields.take_integer("key_length")?,
            duration: fields.take_integer("duration")?,
            metadata: fields.take_secret("metadata"),
        };
        fields.finish()?;
        Ok(request)
    }

    fn check(self, certificate_id: Uuid) -> Result<RegenerateCertificate, MetadataError> {
        Ok(RegenerateCertificate {
            certificate_id,
            is_transitional: self.is_transitional,
            transitional_parent: if self.may_transitional_parent_sign {
                TransitionalParent::MaySign
            } else {
                TransitionalParent::MayNotSign
            },
            key_length: self.key_length,
            duration: self.duration,
            metadata: self.metadata.map(credential::Metadata::parse).transpose()?,
        })
    }
}

fn describe() -> Description {
    Description::new("regenerateCertificate", Tag::Certificates, "Regenerates a certificate")
        .optional_body::<RegenerateRequest>()
        .request_example("transitional", json!({"set_as_transitional": true}))
        .response::<Version>(200, "The added version.")
        .response_example("transitional", example::certificate_version())
        .error(400, "The certificate can't be regenerated or already has a transitional version, or a parameter is invalid.")
        .error(403, "The caller may not write the certificate.")
        .error(404, "The certificate or its CA does not exist.")
        .error(413, "The metadata is too long.")
        .error(422, "The body has an unknown field.")
}

async fn handler(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Arc<Caller>>,
    certificate_id: PathIds<1>,
    request: Request,
) -> Result<Response, ApiError> {
    let failed = |failure| ApiError::of(failure, Endpoint::Regenerate);
    let request = match read_optional_json_body(request, &api.limits).await? {
        Some(body) => RequestObject::parse(&body)
            .and_then(RegenerateRequest::read)
            .map_err(|refused| ApiError::body(&refused, Endpoint::Regenerate))?,
        None => RegenerateRequest::default(),
    };
    let regenerate = request
        .check(id(certificate_id)?)
        .map_err(|long| failed(long.into()))?;
    let written = api
        .credentials
        .regenerate
        .certificate(&caller, regenerate)
        .await
        .map_err(failed)?;
    rendered(&VersionBody::of_written(&written).map_err(failed)?)
}
