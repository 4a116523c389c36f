//! `GET /api/v1/certificates/{certificate_id}/versions`: the versions of a certificate.

use std::sync::Arc;

use axum::{Extension, extract::State, http::Uri, response::Response};
use keywright_core::{authorization::Caller, permission::Operation::Read, ports::VersionSelection};
use serde_json::json;

use super::{failed, id, many};
use crate::{
    Api,
    description::{Described, Parameter, Tag, Version, example},
    request::{QueryParameters, QueryRefused},
    response::ApiFailure,
    route::{Access::Permission, PathIds, Route, route},
};

/// The route.
pub(crate) fn route() -> Route {
    route!(GET "/api/v1/certificates/{certificate_id}/versions", Permission(Read), "GET_CERTIFICATE_VERSIONS", handler, describe)
}

/// The requested versions.
struct VersionsRequest {
    selection: VersionSelection,
}

impl VersionsRequest {
    fn read(query: &QueryParameters) -> Result<Self, QueryRefused> {
        let selection = if query.boolean("current")?.unwrap_or(false) {
            VersionSelection::Current
        } else {
            VersionSelection::All
        };
        Ok(Self { selection })
    }
}

/// Describes the operation.
fn describe() -> Described {
    Described::new(
        "listCertificateVersions",
        Tag::Certificates,
        "Reads the versions of a certificate",
    )
    .parameter(Parameter::optional(
        "current",
        "Whether only the version in use and the transitional one are asked for.",
        json!({"type": "boolean", "default": false}),
    ))
    .answer::<Vec<Version>>(
        200,
        "The versions, newest first; with `current`, the one in use and then the transitional one.",
    )
    .answered("one", json!([example::certificate_version()]))
    .fails(400, "`current` is given twice, or is no boolean.")
    .fails(
        404,
        "There is no such certificate, or the caller may not read it.",
    )
    .fails(413, "The response would be too large.")
}

/// Responds with all versions, newest first, or with the current ones.
async fn handler(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Arc<Caller>>,
    certificate_id: PathIds<1>,
    uri: Uri,
) -> Result<Response, ApiFailure> {
    let request = VersionsRequest::read(&QueryParameters::of(&uri))?;
    let versions = api
        .credentials
        .certificate_versions(&caller, id(certificate_id)?, request.selection)
        .await
        .map_err(failed)?;
    many(caller, versions).await
}
