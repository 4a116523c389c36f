//! Error responses: those of all routes, and their common body.

#![expect(clippy::indexing_slicing, reason = "indexing creates missing keys")]

use serde_json::{Map, Value, json};

use super::operation::{Described, Failing, JSON};
use crate::Access;

/// Returns the error responses of an operation by status, both shared ones and its own. A shared response without additional
/// conditions is a reference.
pub(super) fn failures(described: &Described, access: Access) -> Vec<(u16, Value)> {
    let is_shared = |failure: &&Shared| match failure.of {
        Of::Everything => true,
        Of::Known => access != Access::Open,
        Of::Bodies => described.body.is_some(),
    };
    let shared: Vec<_> = SHARED.iter().filter(is_shared).collect();
    let mut statuses: Vec<_> = shared.iter().map(|failure| failure.status).collect();
    statuses.extend(described.failures.iter().map(|failure| failure.status));
    statuses.sort_unstable();
    statuses.dedup();
    let of = |status: u16| {
        let shared = shared.iter().find(|failure| failure.status == status);
        let own = described.failures.iter();
        let own: Vec<_> = own.filter(|failure| failure.status == status).collect();
        match (shared, own.as_slice()) {
            (Some(shared), []) => {
                json!({"$ref": format!("#/components/responses/{}", shared.name)})
            }
            (shared, own) => error_response(status, shared.copied(), own),
        }
    };
    statuses
        .into_iter()
        .map(|status| (status, of(status)))
        .collect()
}

/// Returns the shared responses by name.
pub(super) fn shared_responses() -> Map<String, Value> {
    let response = |failure: &Shared| {
        (
            failure.name.to_owned(),
            error_response(failure.status, Some(failure), &[]),
        )
    };
    SHARED.iter().map(response).collect()
}

/// Returns the shared headers by name.
pub(super) fn shared_headers() -> Value {
    json!({
        "RequestId": {
            "description": "The request's id in the server's logs and in the audit trail.",
            "required": true,
            "schema": {"type": "string", "format": "uuid"},
        },
        "RetryAfter": {
            "description": "The number of seconds to wait before retrying the request. Absent in read-only mode.",
            "schema": {"type": "integer", "minimum": 1},
        },
        "WwwAuthenticate": {
            "description": "The authentication scheme (RFC 9110, section 11.6.1).",
            "schema": {"type": "string"},
        },
    })
}

/// Returns a reference to the header that every response has.
pub(super) fn request_id() -> Value {
    json!({"$ref": "#/components/headers/RequestId"})
}

fn error_response(status: u16, shared: Option<&Shared>, own: &[&Failing]) -> Value {
    let own = own.iter().map(|failure| failure.when);
    let texts: Vec<_> = own.chain(shared.map(|failure| failure.when)).collect();
    let mut headers = json!({"X-Request-Id": request_id()});
    match status {
        401 => {
            headers["WWW-Authenticate"] = json!({"$ref": "#/components/headers/WwwAuthenticate"});
        }
        429 | 503 => headers["Retry-After"] = json!({"$ref": "#/components/headers/RetryAfter"}),
        _ => {}
    }
    let examples: Map<_, _> = EXAMPLES
        .iter()
        .filter(|(of, ..)| *of == status)
        .map(|(_, name, error, description)| {
            let mut value = json!({"error": error});
            if let Some(description) = description {
                value["error_description"] = json!(description);
            }
            ((*name).to_owned(), json!({"value": value}))
        })
        .collect();
    let mut content = json!({"schema": {"$ref": "#/components/schemas/Failure"}});
    if !examples.is_empty() {
        content["examples"] = Value::Object(examples);
    }
    json!({
        "description": texts.join(" "),
        "headers": headers,
        "content": {JSON: content},
    })
}

/// An error response of several routes.
struct Shared {
    name: &'static str,
    status: u16,
    of: Of,
    when: &'static str,
}

/// The routes with an error response.
enum Of {
    /// All routes.
    Everything,
    /// Routes that require authentication.
    Known,
    /// Routes with a request body.
    Bodies,
}

const SHARED: [Shared; 10] = [
    Shared {
        name: "BodyRefused",
        status: 400,
        of: Of::Bodies,
        when: "The body is malformed or does not match the schema, or its media type is not JSON.",
    },
    Shared {
        name: "Unauthenticated",
        status: 401,
        of: Of::Known,
        when: "The request has neither a valid access token nor a valid client certificate. The error for an expired token is `access_token_expired`.",
    },
    Shared {
        name: "Forbidden",
        status: 403,
        of: Of::Known,
        when: "The access token lacks a scope.",
    },
    Shared {
        name: "BodyTooSlow",
        status: 408,
        of: Of::Bodies,
        when: "The body took too long to arrive.",
    },
    Shared {
        name: "TooLarge",
        status: 413,
        of: Of::Bodies,
        when: "The body is too large.",
    },
    Shared {
        name: "UriTooLong",
        status: 414,
        of: Of::Everything,
        when: "The path and query are too long.",
    },
    Shared {
        name: "TooManyRequests",
        status: 429,
        of: Of::Known,
        when: "The caller has too many requests in progress, or exceeds its request rate.",
    },
    Shared {
        name: "HeadTooLarge",
        status: 431,
        of: Of::Everything,
        when: "The request has too many header fields, or too large ones.",
    },
    Shared {
        name: "InternalError",
        status: 500,
        of: Of::Everything,
        when: "An internal error. The server's log has the cause, under the request's id.",
    },
    Shared {
        name: "Unavailable",
        status: 503,
        of: Of::Known,
        when: "The database or another dependency is unavailable, the server has too many requests in progress, or it is in read-only mode and the request could write.",
    },
];

/// Bodies of real error responses: status, name, error and error description.
const EXAMPLES: [(u16, &str, &str, Option<&str>); 16] = [
    (
        400,
        "malformed",
        "the request body is malformed; it must be a JSON object in UTF-8",
        None,
    ),
    (
        401,
        "absent",
        "access_denied",
        Some(
            "the request needs an access token, or a client certificate where the server takes one",
        ),
    ),
    (
        401,
        "expired",
        "access_token_expired",
        Some("the access token has expired"),
    ),
    (
        403,
        "scope",
        "insufficient_scope",
        Some("the access token lacks a scope that is required here"),
    ),
    (
        404,
        "absent",
        "the credential does not exist or the caller may not access it",
        None,
    ),
    (
        408,
        "too-slow",
        "the request body took too long to arrive",
        None,
    ),
    (409, "exists", "the actor has this permission already", None),
    (
        413,
        "too-large",
        "the value of a credential may have at most 65,536 bytes",
        None,
    ),
    (
        414,
        "too-long",
        "the path and the query of a request may have at most 8192 bytes",
        None,
    ),
    (
        422,
        "unknown-field",
        "the request has the unknown field lenght",
        None,
    ),
    (429, "too-many", "the caller makes too many requests", None),
    (
        431,
        "too-many-fields",
        "a request may have at most 100 header fields",
        None,
    ),
    (500, "storage", "the storage failed", None),
    (
        503,
        "read-only",
        "the server is in read-only mode: nothing can be written at present",
        None,
    ),
    (503, "away", "the storage failed", None),
    (
        501,
        "no-resolver",
        "this server has no resolver plugin configured and can't interpolate",
        None,
    ),
];
