//! `PUT /api/v1/certificates/{certificate_id}/update_transitional_version`: moves the transitional flag.

use std::sync::Arc;

use axum::{
    Extension,
    extract::{Request, State},
    response::Response,
};
use keywright_core::{
    authorization::Caller, permission::Operation::Write, ports::TransitionalVersion,
};
use schemars::JsonSchema;
use serde_json::json;
use uuid::Uuid;

use super::{id, many};
use crate::{
    Api,
    description::{Description, Tag, Version, example},
    request::{BodyRefused, RequestObject, parse_json_body},
    response::{ApiFailure, Endpoint},
    route::{Access::Permission, PathIds, Route, route},
};

pub(crate) fn route() -> Route {
    route!(PUT "/api/v1/certificates/{certificate_id}/update_transitional_version", Permission(Write), "UPDATE_TRANSITIONAL_VERSION", handler, describe)
}

/// Where the flag goes.
#[derive(JsonSchema)]
#[schemars(rename = "UpdateTransitionalVersionRequest", deny_unknown_fields)]
struct UpdateTransitionalVersionRequest {
    /// The id of the version that becomes the transitional one, or `latest` for the newest version that has a certificate.
    /// If it is null or missing, no version is transitional any more.
    #[schemars(rename = "version", with = "Option<VersionToFlag>")]
    to: TransitionalVersion,
}

/// The id of a version, or `latest`.
#[derive(JsonSchema)]
#[schemars(untagged, inline)]
#[expect(
    dead_code,
    reason = "only for the API description: the body is parsed by hand"
)]
enum VersionToFlag {
    Id(Uuid),
    Latest(Latest),
}

#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase", inline)]
#[expect(
    dead_code,
    reason = "only for the API description: the body is parsed by hand"
)]
enum Latest {
    Latest,
}

impl UpdateTransitionalVersionRequest {
    fn read(mut members: RequestObject<'_>) -> Result<Self, BodyRefused> {
        let version = members.take_text("version");
        members.finish()?;
        let to = match version?.as_deref() {
            None => TransitionalVersion::None,
            Some("latest") => TransitionalVersion::Latest,
            Some(id) => {
                TransitionalVersion::Id(id.parse().map_err(|_| BodyRefused::MemberMalformed {
                    member: "version",
                    expected: "the id of a version, \"latest\" or null",
                })?)
            }
        };
        Ok(Self { to })
    }
}

fn describe() -> Description {
    Description::new("updateTransitionalVersion", Tag::Certificates, "Moves the transitional flag to another version, or takes it away")
        .text("An authority is replaced in three steps: it is regenerated as transitional; the flag is moved to the old version, so that \
            the new one signs, and what it signs is regenerated; the flag is taken away.")
        .body::<UpdateTransitionalVersionRequest>()
        .request_example("move", json!({"version": "8f3b4de4-b821-46d6-a28c-52f21f21a18e"}))
        .request_example("end", json!({"version": null}))
        .answer::<Vec<Version>>(200, "The version in use, and then the transitional one; what there is of them.")
        .answered("move", json!([example::certificate_version()]))
        .error(400, "The certificate has no such version.")
        .error(403, "The caller may not write the certificate.")
        .error(404, "There is no such certificate.")
        .error(422, "The body has a member that is not known.")
}

/// Moves the flag and responds with the current versions.
async fn handler(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Arc<Caller>>,
    certificate_id: PathIds<1>,
    request: Request,
) -> Result<Response, ApiFailure> {
    let read = UpdateTransitionalVersionRequest::read;
    let request = parse_json_body(request, &api.limits, Endpoint::Other, read).await?;
    let versions = api
        .credentials
        .move_transitional_version(&caller, id(certificate_id)?, request.to)
        .await?;
    many(caller, versions).await
}
