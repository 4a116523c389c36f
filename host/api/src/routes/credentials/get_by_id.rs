//! `GET /api/v1/data/{id}`: one version.

use std::sync::Arc;

use axum::{Extension, extract::State, response::Response};
use keywright_core::{Failure, authorization::Caller, permission::Operation::Read};

use crate::{
    Api,
    description::{Described, Tag, Version, example},
    response::{ApiFailure, Endpoint, VersionBody, rendered},
    route::{Access::Permission, PathIds, Route, route},
};

/// The route.
pub(crate) fn route() -> Route {
    route!(GET "/api/v1/data/{id}", Permission(Read), "GET", handler, describe)
}

/// Describes the operation.
fn describe() -> Described {
    Described::new("getVersionById", Tag::Credentials, "Reads one version")
        .answer::<Version>(200, "The version.")
        .answered("json", example::json_version())
        .fails(
            404,
            "There is no such version, or the caller may not read its credential.",
        )
}

/// Returns one version. An id that is not a UUID is treated as unknown.
async fn handler(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Arc<Caller>>,
    PathIds(id): PathIds<1>,
) -> Result<Response, ApiFailure> {
    let failed = |failure| ApiFailure::of(failure, Endpoint::Other);
    let [id] = id.ok_or_else(|| failed(Failure::NotFound))?;
    let version = api.credentials.by_id(&caller, id).await.map_err(failed)?;
    rendered(&VersionBody::of(&version).map_err(failed)?)
}
