//! What requests fail with: what holds for all routes, and the body that every failure has.

#![expect(
    clippy::indexing_slicing,
    reason = "a member that is not there is made"
)]

use serde_json::{Map, Value, json};

use super::operation::{Described, Failing, JSON};
use crate::Access;

/// The answers of an operation that tell of failures, by status: those that all routes of its kind have, and its own. Where it
/// adds nothing to what all have, the shared one is referred to.
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
            (shared, own) => told(status, shared.copied(), own),
        }
    };
    statuses
        .into_iter()
        .map(|status| (status, of(status)))
        .collect()
}

/// The answers that several operations share, by their names.
pub(super) fn shared_responses() -> Map<String, Value> {
    let told = |failure: &Shared| {
        (
            failure.name.to_owned(),
            told(failure.status, Some(failure), &[]),
        )
    };
    SHARED.iter().map(told).collect()
}

/// The headers that several answers share, by their names.
pub(super) fn shared_headers() -> Value {
    json!({
        "RequestId": {
            "description": "The request's id, under which it stands in the server's logs and in the audit trail.",
            "required": true,
            "schema": {"type": "string", "format": "uuid"},
        },
        "RetryAfter": {
            "description": "After how many seconds the request may be tried again. In read-only mode nobody knows, and it is absent.",
            "schema": {"type": "integer", "minimum": 1},
        },
        "WwwAuthenticate": {
            "description": "By which scheme a caller may identify itself (RFC 9110, section 11.6.1).",
            "schema": {"type": "string"},
        },
    })
}

/// A reference to the header that every answer has.
pub(super) fn request_id() -> Value {
    json!({"$ref": "#/components/headers/RequestId"})
}

fn told(status: u16, shared: Option<&Shared>, own: &[&Failing]) -> Value {
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

/// A failure that several routes have.
struct Shared {
    name: &'static str,
    status: u16,
    of: Of,
    when: &'static str,
}

/// Which routes have a failure.
enum Of {
    /// All of them.
    Everything,
    /// Those that need an identity.
    Known,
    /// Those that take a body.
    Bodies,
}

const SHARED: [Shared; 10] = [
    Shared {
        name: "BodyRefused",
        status: 400,
        of: Of::Bodies,
        when: "The body is not JSON of the expected form, or its media type is another.",
    },
    Shared {
        name: "Unauthenticated",
        status: 401,
        of: Of::Known,
        when: "The request has no valid access token and no valid client certificate. A token that has expired is told by the error `access_token_expired`.",
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
        when: "Path and query are too long.",
    },
    Shared {
        name: "TooManyRequests",
        status: 429,
        of: Of::Known,
        when: "The caller has too many requests under way, or makes too many.",
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
        when: "The server failed. Its log says why, under the request's id.",
    },
    Shared {
        name: "Unavailable",
        status: 503,
        of: Of::Known,
        when: "The database or something else that the server needs is away, it has too many requests under way, or it is in read-only mode and the request could write.",
    },
];

/// Bodies that were answered: status, name, error, and its description.
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
