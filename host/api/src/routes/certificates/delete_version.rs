//! `DELETE /api/v1/certificates/{certificate_id}/versions/{version_id}`: deletes one version.

use std::sync::Arc;

use axum::{Extension, extract::State, response::Response};

use super::{failed, ids, one};
use keywright_core::authorization::Caller;

use crate::{
    Api,
    description::{Described, Tag, Version, example},
    response::ApiFailure,
    route::PathIds,
};

/// Describes the operation.
pub(crate) fn describe() -> Described {
    Described::new(
        "deleteCertificateVersion",
        Tag::Certificates,
        "Deletes one version of a certificate",
    )
    .answer::<Version>(200, "The version that was deleted.")
    .answered("deleted", example::certificate_version())
    .fails(400, "It is the only version.")
    .fails(
        404,
        "There is no such version, or the caller may not delete the certificate.",
    )
}

/// Deletes a version and responds with it.
pub(crate) async fn handler(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Arc<Caller>>,
    path: PathIds<2>,
) -> Result<Response, ApiFailure> {
    let [certificate_id, version_id] = ids(path)?;
    let version = api
        .credentials
        .delete_certificate_version(&caller, certificate_id, version_id)
        .await
        .map_err(failed)?;
    one(&version)
}
