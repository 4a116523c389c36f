//! `GET /api/v1/certificates/{certificate_id}/versions`: the versions of a certificate.

use std::sync::Arc;

use axum::{
    Extension,
    extract::{Path, State, rejection::PathRejection},
    http::Uri,
    response::Response,
};
use keywright_core::{authorization::Caller, ports::VersionSelection};
use uuid::Uuid;

use super::{failed, ids, many};
use crate::{
    Api,
    request::{QueryParameters, QueryRefused},
    response::ApiFailure,
};

/// Which versions.
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

/// Answers with all versions, newest first, or with the current ones.
pub(crate) async fn handler(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Arc<Caller>>,
    certificate_id: Result<Path<Uuid>, PathRejection>,
    uri: Uri,
) -> Result<Response, ApiFailure> {
    let request = VersionsRequest::read(&QueryParameters::of(&uri))?;
    let versions = api
        .credentials
        .certificate_versions(&caller, ids(certificate_id)?, request.selection)
        .await
        .map_err(failed)?;
    many(&versions)
}
