//! `/api/v1/certificates/{certificate_id}/versions`: lists, adds and deletes versions of a certificate.

use std::sync::Arc;

use axum::{
    Extension,
    extract::{Request, State},
    http::Uri,
    response::Response,
};
use keywright_core::{
    Failure, Secret,
    authorization::Caller,
    credential::NewCertificateVersion,
    permission::Operation::{Delete, Read, Write},
    ports::VersionSelection,
};
use schemars::JsonSchema;
use serde_json::json;
use uuid::Uuid;

use super::{id, ids, version_response, versions_response};
use crate::{
    Api,
    description::{Description, LenientBoolean, Parameter, SetCertificate, Tag, Version, example},
    request::{BodyError, QueryParameters, RequestObject, parse_json_body},
    response::{ApiError, Endpoint},
    route::{Access::Permission, PathIds, Route, route},
};

pub(crate) fn list_route() -> Route {
    route!(GET "/api/v1/certificates/{certificate_id}/versions", Permission(Read), "GET_CERTIFICATE_VERSIONS", list, describe_list)
}

pub(crate) fn add_route() -> Route {
    route!(POST "/api/v1/certificates/{certificate_id}/versions", Permission(Write), "ADD_CERTIFICATE_VERSION", add, describe_add)
}

pub(crate) fn delete_route() -> Route {
    route!(DELETE "/api/v1/certificates/{certificate_id}/versions/{version_id}", Permission(Delete), "DELETE_CERTIFICATE_VERSION", delete, describe_delete)
}

fn describe_list() -> Description {
    Description::new(
        "listCertificateVersions",
        Tag::Certificates,
        "Reads the versions of a certificate",
    )
    .parameter(Parameter::optional(
        "current",
        "Whether to return only the active version and the transitional one.",
        json!({"type": "boolean", "default": false}),
    ))
    .response::<Vec<Version>>(
        200,
        "The versions, newest first; with `current`, the active version, then the transitional one.",
    )
    .response_example("one", json!([example::certificate_version()]))
    .error(400, "`current` is repeated or not a boolean.")
    .error(
        404,
        "The certificate does not exist, or the caller may not read it.",
    )
    .error(413, "The response would be too large.")
}

async fn list(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Arc<Caller>>,
    certificate_id: PathIds<1>,
    uri: Uri,
) -> Result<Response, ApiError> {
    let selection = match QueryParameters::of(&uri).boolean("current")? {
        Some(true) => VersionSelection::Current,
        Some(false) | None => VersionSelection::All,
    };
    let versions = api
        .credentials
        .certificates
        .versions(&caller, id(certificate_id)?, selection)
        .await?;
    versions_response(caller, versions).await
}

/// A certificate version to add.
#[derive(JsonSchema)]
#[schemars(rename = "AddCertificateVersionRequest", deny_unknown_fields)]
struct AddVersionRequest {
    /// The certificate; `ca_name` is optional.
    #[schemars(with = "SetCertificate")]
    value: Option<Secret>,
    /// Whether the new version is transitional.
    #[schemars(rename = "transitional", default, with = "LenientBoolean")]
    is_transitional: bool,
}

impl AddVersionRequest {
    fn read(mut fields: RequestObject<'_>) -> Result<Self, BodyError> {
        let request = Self {
            value: fields.take_secret("value"),
            is_transitional: fields.take_boolean("transitional")?.unwrap_or(false),
        };
        fields.finish()?;
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

fn describe_add() -> Description {
    Description::new(
        "addCertificateVersion",
        Tag::Certificates,
        "Adds a version with a certificate from the caller",
    )
    .body::<AddVersionRequest>()
    .request_example(
        "transitional",
        json!({"value": {"certificate": example::CERTIFICATE}, "transitional": true}),
    )
    .response::<Version>(200, "The added version.")
    .response_example("transitional", example::certificate_version())
    .error(
        400,
        "The certificate is invalid, or already has a transitional version.",
    )
    .error(403, "The caller may not write the certificate.")
    .error(
        404,
        "The certificate, or the CA named by `ca_name`, does not exist.",
    )
    .error(413, "The value is too large.")
    .error(422, "The body or the value has an unknown field.")
}

async fn add(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Arc<Caller>>,
    certificate_id: PathIds<1>,
    request: Request,
) -> Result<Response, ApiError> {
    let read = AddVersionRequest::read;
    let request = parse_json_body(request, &api.limits, Endpoint::Other, read).await?;
    let new = request.check(id(certificate_id)?)?;
    let version = api.credentials.rotation.add_version(&caller, new).await?;
    version_response(&version)
}

fn describe_delete() -> Description {
    Description::new(
        "deleteCertificateVersion",
        Tag::Certificates,
        "Deletes one version of a certificate",
    )
    .response::<Version>(200, "The deleted version.")
    .response_example("deleted", example::certificate_version())
    .error(400, "The version is the only one of the certificate.")
    .error(
        404,
        "The version does not exist, or the caller may not delete the certificate.",
    )
}

async fn delete(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Arc<Caller>>,
    path: PathIds<2>,
) -> Result<Response, ApiError> {
    let [certificate_id, version_id] = ids(path)?;
    let version = api
        .credentials
        .rotation
        .delete_version(&caller, certificate_id, version_id)
        .await?;
    version_response(&version)
}
