//! `/api/v1/certificates`.

pub(crate) mod list;
pub(crate) mod regenerate;
pub(crate) mod versions;

use std::sync::Arc;

use axum::response::Response;
use keywright_core::{authorization::Caller, credential::CredentialVersion};

use crate::response::{ApiError, VersionBody, rendered, rendered_versions};

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
