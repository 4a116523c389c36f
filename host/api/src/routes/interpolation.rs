//! `POST /api/v1/interpolate`: resolves the references in a document.

use axum::{extract::Request, http::StatusCode, response::Response};
use keywright_core::permission::Operation::Read;
use serde_json::{Map, Value, json};

use crate::{
    request::{parse_document, read_json_body},
    response::{ApiError, json},
    route::{Access::Permission, Call, Route, route},
};

pub(crate) fn route() -> Route {
    let value = json!({"host": "db.example", "port": 5432});
    route!(POST INTERPOLATE, Permission(Read), "INTERPOLATE", handler,
        "interpolate", Interpolation, "Resolves credential references in service bindings",
        400 => "The document is malformed, or refers to a credential of another type or to an absent field.",
        404 => "A referenced credential does not exist, or the caller may not read it.",
        413 => "The referenced values are too large.",
        501 => "The server has no resolver configured.")
        .text("The document is a JSON object. Its arrays may contain service bindings: objects with a field `credentials`. \
            If `credentials` contains a reference, `credentials` is replaced with the value of the referenced credential, which must be of type json. \
            A reference is a string such as `((/demo/database))` in a field `credhub-ref`, `credhub_ref` or `store-ref`. \
            The server's configuration may specify other fields. It may also allow references in all other strings, \
            to credentials of any type and to their fields: `postgres://((/demo/db.username))@host`.\n\n\
            This operation is also available in read-only mode.")
        .body::<Map<String, Value>>()
        .request_example("binding", json!({"services": [{"label": "db", "credentials": {"credhub-ref": "((/demo/database))"}}]}))
        .response::<Map<String, Value>>(200, "The document with its references resolved, otherwise unchanged.")
        .response_example("binding", json!({"services": [{"label": "db", "credentials": value}]}))
}

/// Returns the document with its references resolved. Fields keep their order.
async fn handler(Call { api, caller }: Call, request: Request) -> Result<Response, ApiError> {
    let body = read_json_body(request, &api.limits).await?;
    let document = parse_document(&body)?;
    let interpolated = api
        .interpolation
        .interpolate(&caller, document.as_checked())
        .await?;
    Ok(json(StatusCode::OK, interpolated))
}

pub(crate) const INTERPOLATE: &str = "/api/v1/interpolate";
