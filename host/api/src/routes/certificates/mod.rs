//! `/api/v1/certificates`.

pub(crate) mod add_version;
pub(crate) mod delete_version;
pub(crate) mod list;
pub(crate) mod regenerate;
pub(crate) mod update_transitional_version;
pub(crate) mod versions;

use axum::{
    extract::{Path, rejection::PathRejection},
    response::Response,
};
use keywright_core::{Failure, credential::CredentialVersion};

use crate::response::{ApiFailure, Endpoint, VersionBody, rendered, rendered_versions};

/// The ids of a path. What is no UUID is an id that nothing has.
fn ids<T>(ids: Result<Path<T>, PathRejection>) -> Result<T, ApiFailure> {
    let Path(ids) = ids.map_err(|_| ApiFailure::of(Failure::NotFound, Endpoint::Other))?;
    Ok(ids)
}

/// A response with one version.
fn one(version: &CredentialVersion) -> Result<Response, ApiFailure> {
    rendered(&VersionBody::of(version).map_err(failed)?)
}

/// A response with an array of versions.
async fn many(versions: Vec<CredentialVersion>) -> Result<Response, ApiFailure> {
    rendered_versions(versions, |versions| {
        let bodies: Vec<_> = versions
            .iter()
            .map(VersionBody::of)
            .collect::<Result<_, _>>()
            .map_err(failed)?;
        rendered(&bodies)
    })
    .await
}

fn failed(failure: Failure) -> ApiFailure {
    ApiFailure::of(failure, Endpoint::Other)
}
