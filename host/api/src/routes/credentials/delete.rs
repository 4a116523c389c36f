//! `DELETE /api/v1/data`: deletes a credential with all its versions.

use std::sync::Arc;

use axum::{
    Extension,
    extract::State,
    http::{StatusCode, Uri},
};
use keywright_core::{
    authorization::Caller, credential::LookupName, permission::Operation::Delete,
};

use crate::{
    Api,
    description::{Description, Parameter, Tag},
    request::QueryParameters,
    response::ApiError,
    route::{Access::Permission, Route, route},
};

pub(crate) fn route() -> Route {
    route!(DELETE "/api/v1/data", Permission(Delete), "DELETE", handler, describe)
}

fn describe() -> Description {
    Description::new(
        "deleteCredential",
        Tag::Credentials,
        "Deletes a credential with all its versions",
    )
    .parameter(Parameter::required("name", "The credential's name.").example("/demo/database"))
    .empty_response(204, "The credential was deleted.")
    .error(400, "The name is missing, empty or repeated.")
    .error(
        404,
        "The credential does not exist, or the caller may not delete it.",
    )
}

async fn handler(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Arc<Caller>>,
    uri: Uri,
) -> Result<StatusCode, ApiError> {
    let name = LookupName::new(QueryParameters::of(&uri).required("name")?);
    api.credentials.read.delete(&caller, &name).await?;
    Ok(StatusCode::NO_CONTENT)
}
