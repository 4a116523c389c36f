//! `DELETE /api/v1/certificates/{certificate_id}/versions/{version_id}`: deletes one version.

use std::sync::Arc;

use axum::{Extension, extract::State, response::Response};
use keywright_core::{authorization::Caller, permission::Operation::Delete};

use super::{failed, ids, one};
use crate::{
    Api,
    description::{Described, Tag, Version, example},
    response::ApiFailure,
    route::{Access::Permission, PathIds, Route, route},
};

/// The route.
pub(crate) fn route() -> Route {
    route!(DELETE "/api/v1/certificates/{certificate_id}/versions/{version_id}", Permission(Delete), "DELETE_CERTIFICATE_VERSION", handler, describe)
}

/// Describes the operation.
fn describe() -> Described {
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
async fn handler(
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
