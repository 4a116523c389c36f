//! `/api/v1/certificates`.

pub(crate) mod list;
pub(crate) mod regenerate;
pub(crate) mod versions;

use std::sync::Arc;

use axum::response::Response;
use keywright_core::{UseCaseError, authorization::Caller, credential::CredentialVersion};
use uuid::Uuid;

use crate::{
    response::{ApiError, VersionBody, rendered, rendered_versions},
    route::PathIds,
};

/// Returns the ids of a path. A segment that is not a UUID is treated as an unknown id.
fn ids<const COUNT: usize>(PathIds(ids): PathIds<COUNT>) -> Result<[Uuid; COUNT], ApiError> {
    Ok(ids.ok_or(UseCaseError::NotFound)?)
}

fn id(path: PathIds<1>) -> Result<Uuid, ApiError> {
    let [id] = ids(path)?;
    Ok(id)
}

async fn versions_response(
    caller: Arc<Caller>,
    versions: Vec<CredentialVersion>,
) -> Result<Response, ApiError> {
    rendered_versions(caller, versions, |versions| {
        let bodies: Vec<_> = versions
            .iter()
            .map(VersionBody::of)
            .collect::<Result<_, _>>()?;
        rendered(&bodies)
    })
    .await
}
