//! `DELETE /api/v1/data`: a credential with all its versions.

use std::sync::Arc;

use axum::{Extension, extract::State, http::StatusCode, http::Uri};
use keywright_core::{authorization::Caller, credential::LookupName};

use crate::{
    Api,
    request::QueryParameters,
    response::{ApiFailure, Endpoint},
};

/// Deletes the credential that the query names.
pub(crate) async fn handler(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Arc<Caller>>,
    uri: Uri,
) -> Result<StatusCode, ApiFailure> {
    let name = LookupName::new(QueryParameters::of(&uri).required("name")?);
    api.credentials
        .delete(&caller, &name)
        .await
        .map_err(|failure| ApiFailure::of(failure, Endpoint::Other))?;
    Ok(StatusCode::NO_CONTENT)
}
