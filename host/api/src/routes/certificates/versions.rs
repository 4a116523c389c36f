//! Lists, adds and deletes versions of a certificate (`/api/v1/certificates/{certificate_id}/versions`), and moves the transitional
//! flag (`PUT /api/v1/certificates/{certificate_id}/update_transitional_version`).

use axum::response::Response;
use keywright_core::{
    credential::NewCertificateVersion,
    permission::Operation::{Delete, Read, Write},
    ports::{TransitionalVersion, VersionSelection},
};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::json;

use super::versions_response;
use crate::{
    description::{LenientBoolean, Parameter, SetCertificate, Version, VersionToFlag, example},
    request::{BodyError, JsonText, QueryParameters, StrictJson},
    response::{ApiError, VersionBody, rendered},
    route::{Access::Permission, Call, PathIds, Route, route},
};

pub(crate) fn list_route() -> Route {
    route!(GET "/api/v1/certificates/{certificate_id}/versions", Permission(Read), "GET_CERTIFICATE_VERSIONS", list,
        "listCertificateVersions", Certificates, "Reads the versions of a certificate",
        400 => "`current` is repeated or not a boolean.",
        404 => "The certificate does not exist, or the caller may not read it.",
        413 => "The response would be too large.")
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
}

pub(crate) fn add_route() -> Route {
    route!(POST "/api/v1/certificates/{certificate_id}/versions", Permission(Write), "ADD_CERTIFICATE_VERSION", add,
        "addCertificateVersion", Certificates, "Adds a version with a certificate from the caller",
        400 => "The certificate is invalid, or already has a transitional version.",
        403 => "The caller may not write the certificate.",
        404 => "The certificate, or the CA named by `ca_name`, does not exist.",
        413 => "The value is too large.",
        422 => "The body or the value has an unknown field.")
        .body::<AddVersionRequest>()
        .request_example(
            "transitional",
            json!({"value": {"certificate": example::CERTIFICATE}, "transitional": true}),
        )
        .response::<Version>(200, "The added version.")
        .response_example("transitional", example::certificate_version())
}

pub(crate) fn delete_route() -> Route {
    route!(DELETE "/api/v1/certificates/{certificate_id}/versions/{version_id}", Permission(Delete), "DELETE_CERTIFICATE_VERSION", delete,
        "deleteCertificateVersion", Certificates, "Deletes one version of a certificate",
        400 => "The version is the only one of the certificate.",
        404 => "The version does not exist, or the caller may not delete the certificate.")
        .response::<Version>(200, "The deleted version.")
        .response_example("deleted", example::certificate_version())
}

async fn list(
    Call { api, caller }: Call,
    PathIds([certificate_id]): PathIds<1>,
    query: QueryParameters,
) -> Result<Response, ApiError> {
    let selection = match query.boolean("current")? {
        Some(true) => VersionSelection::Current,
        Some(false) | None => VersionSelection::ALL,
    };
    let versions = api
        .credentials
        .certificates
        .versions(&caller, certificate_id, selection)
        .await?;
    versions_response(caller, versions).await
}

/// A certificate version to add.
#[derive(Deserialize, JsonSchema)]
#[serde(rename = "AddCertificateVersionRequest", deny_unknown_fields)]
struct AddVersionRequest {
    /// The certificate; `ca_name` is optional.
    #[schemars(with = "SetCertificate")]
    value: Option<JsonText>,
    /// Whether the new version is transitional.
    #[serde(default)]
    #[schemars(with = "LenientBoolean")]
    transitional: bool,
}

async fn add(
    Call { api, caller }: Call,
    PathIds([certificate_id]): PathIds<1>,
    StrictJson(request): StrictJson<AddVersionRequest>,
) -> Result<Response, ApiError> {
    let new = NewCertificateVersion {
        certificate_id,
        value: JsonText::required_value(request.value)?,
        is_transitional: request.transitional,
    };
    let version = api.credentials.rotation.add_version(&caller, new).await?;
    rendered(&VersionBody::of(&version)?)
}

async fn delete(
    Call { api, caller }: Call,
    PathIds([certificate_id, version_id]): PathIds<2>,
) -> Result<Response, ApiError> {
    let version = api
        .credentials
        .rotation
        .delete_version(&caller, certificate_id, version_id)
        .await?;
    caller.trail().disclose(version.id);
    rendered(&VersionBody::of(&version)?)
}

pub(crate) fn update_transitional_route() -> Route {
    route!(PUT "/api/v1/certificates/{certificate_id}/update_transitional_version", Permission(Write), "UPDATE_TRANSITIONAL_VERSION", update_transitional,
        "updateTransitionalVersion", Certificates, "Moves the transitional flag to another version, or removes it",
        400 => "`version` is malformed or unknown, or it is `latest` and no version has a certificate.",
        403 => "The caller may not write the certificate.",
        404 => "The certificate does not exist.",
        422 => "The body has an unknown field.")
        .text("A transitional version is trusted, but by default not used to sign.\n\n\
            To rotate a CA without downtime: 1. Regenerate the CA as transitional. 2. Move the flag to the old version, so that the new \
            version signs. 3. Regenerate the certificates that the CA signed. 4. Remove the flag.")
        .body::<UpdateTransitionalVersionRequest>()
        .request_example("move", json!({"version": "8f3b4de4-b821-46d6-a28c-52f21f21a18e"}))
        .request_example("end", json!({"version": null}))
        .response::<Vec<Version>>(200, "The active version and the transitional version, if any, in this order.")
        .response_example("move", json!([example::certificate_version()]))
}

/// The new transitional version.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct UpdateTransitionalVersionRequest {
    /// The id of the new transitional version, or `latest` for the latest version that has a certificate. If null or missing,
    /// the flag is removed.
    #[schemars(with = "Option<VersionToFlag>")]
    version: RequestedVersion,
}

/// The requested version, or the error of the field. If the body also has an unknown field, only the unknown field is reported.
struct RequestedVersion(Result<TransitionalVersion, BodyError>);

impl<'de> Deserialize<'de> for RequestedVersion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let version = Option::<String>::deserialize(deserializer).ok();
        let version = version.and_then(|version| match version.as_deref() {
            None => Some(TransitionalVersion::None),
            Some("latest") => Some(TransitionalVersion::Latest),
            Some(id) => id.parse().ok().map(TransitionalVersion::Id),
        });
        let refused = || BodyError::field("version", "the id of a version, \"latest\" or null");
        Ok(Self(version.ok_or_else(refused)))
    }
}

async fn update_transitional(
    Call { api, caller }: Call,
    PathIds([certificate_id]): PathIds<1>,
    StrictJson(request): StrictJson<UpdateTransitionalVersionRequest>,
) -> Result<Response, ApiError> {
    let to = request.version.0?;
    let versions = api
        .credentials
        .rotation
        .move_transitional_version(&caller, certificate_id, to, &[])
        .await?;
    for version in &versions {
        caller.trail().disclose(version.id);
    }
    versions_response(caller, versions).await
}
