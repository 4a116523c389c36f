//! `POST /api/v1/interpolate`: resolves the references in a document.

use std::sync::Arc;

use axum::{
    Extension,
    extract::{Request, State},
    http::StatusCode,
    response::Response,
};
use keywright_core::{authorization::Caller, permission::Operation::Read};
use serde_json::{Map, Value, json};

use crate::{
    Api,
    description::{Description, Tag},
    request::{parse_document, read_json_body},
    response::{ApiError, json},
    route::{Access::Permission, Route, route},
    server_mode::INTERPOLATE,
};

pub(crate) fn route() -> Route {
    route!(POST INTERPOLATE, Permission(Read), "INTERPOLATE", handler, describe)
}

fn describe() -> Description {
    let value = json!({"host": "db.example", "port": 5432});
    Description::new("interpolate", Tag::Interpolation, "Resolves credential references in service bindings")
        .text("The document is a JSON object. Its arrays may contain service bindings: objects with a field `credentials`. \
            If `credentials` contains a reference, the whole object is replaced with the value of the referenced credential, which must be of type json. \
            A reference is a string such as `((/demo/database))` in a field `credhub-ref`, `credhub_ref` or `store-ref`. \
            The server's configuration may specify other fields. It may also allow references in all other strings, \
            to credentials of any type and to their fields: `postgres://((/demo/db.username))@host`.\n\n\
            This operation is also available in read-only mode.")
        .body::<Map<String, Value>>()
        .request_example("binding", json!({"services": [{"label": "db", "credentials": {"credhub-ref": "((/demo/database))"}}]}))
        .response::<Map<String, Value>>(200, "The document with its references resolved, otherwise unchanged.")
        .response_example("binding", json!({"services": [{"label": "db", "credentials": value}]}))
        .error(400, "The document is malformed, or refers to a credential of another type or to an absent field.")
        .error(404, "A referenced credential does not exist, or the caller may not read it.")
        .error(413, "The referenced values are too large.")
        .error(501, "The server has no resolver configured.")
}

/// Returns the document with its references resolved. Fields keep their order.
async fn handler(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Arc<Caller>>,
    request: Request,
) -> Result<Response, ApiError> {
    let body = read_json_body(request, &api.limits).await?;
    let document = parse_document(&body)?;
    let interpolated = api.interpolation.interpolate(&caller, &document).await?;
    Ok(json(StatusCode::OK, interpolated))
}
