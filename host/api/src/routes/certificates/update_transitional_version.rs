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

use super::{id, versions_response};
use crate::{
    Api,
    description::{Description, Tag, Version, example},
    request::{BodyError, RequestObject, parse_json_body},
    response::{ApiError, Endpoint},
    route::{Access::Permission, PathIds, Route, route},
};

pub(crate) fn route() -> Route {
    route!(PUT "/api/v1/certificates/{certificate_id}/update_transitional_version", Permission(Write), "UPDATE_TRANSITIONAL_VERSION", handler, describe)
}

/// The new transitional version.
#[derive(JsonSchema)]
#[schemars(rename = "UpdateTransitionalVersionRequest", deny_unknown_fields)]
struct UpdateTransitionalVersionRequest {
    /// The id of the new transitional version, or `latest` for the newest version that has a certificate. If null or missing,
    /// the flag is removed.
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
    fn read(mut fields: RequestObject<'_>) -> Result<Self, BodyError> {
        let version = fields.take_text("version");
        fields.finish()?;
        let to = match version?.as_deref() {
            None => TransitionalVersion::None,
            Some("latest") => TransitionalVersion::Latest,
            Some(id) => {
                TransitionalVersion::Id(id.parse().map_err(|_| BodyError::FieldMalformed {
                    field: "version",
                    expected: "the id of a version, \"latest\" or null",
                })?)
            }
        };
        Ok(Self { to })
    }
}

fn describe() -> Description {
    Description::new("updateTransitionalVersion", Tag::Certificates, "Moves the transitional flag to another version, or removes it")
        .text("A transitional version is trusted, but by default not used to sign.\n\n\
            To rotate a CA without downtime: 1. Regenerate the CA as transitional. 2. Move the flag to the old version, so that the new \
            version signs. 3. Regenerate the certificates that the CA signed. 4. Remove the flag.")
        .body::<UpdateTransitionalVersionRequest>()
        .request_example("move", json!({"version": "8f3b4de4-b821-46d6-a28c-52f21f21a18e"}))
        .request_example("end", json!({"version": null}))
        .response::<Vec<Version>>(200, "The active version and the transitional version, if any, in this order.")
        .response_example("move", json!([example::certificate_version()]))
        .error(400, "The field `version` is malformed or not the id of a version of this certificate, or it is `latest` and no version has a certificate.")
        .error(403, "The caller may not write the certificate.")
        .error(404, "The certificate does not exist.")
        .error(422, "The body has an unknown field.")
}

/// Moves the flag and responds with the current versions.
async fn handler(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Arc<Caller>>,
    certificate_id: PathIds<1>,
    request: Request,
) -> Result<Response, ApiError> {
    let read = UpdateTransitionalVersionRequest::read;
    let request = parse_json_body(request, &api.limits, Endpoint::Other, read).await?;
    let versions = api
        .credentials
        .rotation
        .move_transitional_version(&caller, id(certificate_id)?, request.to)
        .await?;
    versions_response(caller, versions).await
}
