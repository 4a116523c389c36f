//! Assembles the description, including the error responses that all routes share.

#![expect(clippy::indexing_slicing, reason = "indexing creates missing keys")]

use schemars::{Schema, SchemaGenerator, generate::SchemaSettings, transform::RecursiveTransform};
use serde_json::{Map, Value, json};

use super::operation::{Body, Description, Example, JSON, Parameter, Response, Tag};
use crate::{Access, Information, Route, response::FailureBody, routes};

pub(super) fn document() -> Value {
    let mut schemas = Schemas::new();
    let mut paths = Map::new();
    for route in routes() {
        let operation = operation(&route, &mut schemas);
        let path = paths.entry(route.path()).or_insert_with(|| json!({}));
        if let Value::Object(operations) = path {
            operations.insert(route.method().as_str().to_ascii_lowercase(), operation);
        }
    }
    paths.sort_keys();
    let tags = Tag::ALL.map(|tag| json!({"name": tag, "description": tag.text()}));
    json!({
        "openapi": "3.1.0",
        "jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
        "info": {
            "title": "Keywright",
            "version": Information::API_LEVEL,
            "summary": "A credential server with the CredHub API.",
            "description": INTRODUCTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/", "description": "This server."}],
        "security": [{"bearerToken": []}, {"clientCertificate": []}],
        "tags": tags,
        "paths": paths,
        "components": {
            "schemas": schemas.into_definitions(),
            "responses": shared_responses(),
            "headers": shared_headers(),
            "securitySchemes": security_schemes(),
        },
    })
}

/// Joins the lines of a description, which is a wrapped doc comment.
fn join_lines(schema: &mut Schema) {
    if let Some(Value::String(text)) = schema.get_mut("description") {
        *text = text.replace('\n', " ");
    }
}

/// The schema generators for requests and for responses, because a field may be optional in only one of them. Their
/// definitions share one namespace.
struct Schemas {
    of_requests: SchemaGenerator,
    of_responses: SchemaGenerator,
}

impl Schemas {
    fn new() -> Self {
        let settings = || {
            SchemaSettings::draft2020_12()
                .with(|settings| {
                    settings.definitions_path = "/components/schemas".into();
                    settings.meta_schema = None;
                })
                .with_transform(RecursiveTransform(join_lines))
        };
        let mut schemas = Self {
            of_requests: settings().for_deserialize().into_generator(),
            of_responses: settings().for_serialize().into_generator(),
        };
        schemas.of_responses.subschema_for::<FailureBody<'_>>();
        schemas
    }

    fn into_definitions(mut self) -> Map<String, Value> {
        let mut definitions = self.of_requests.take_definitions(true);
        definitions.extend(self.of_responses.take_definitions(true));
        definitions.sort_keys();
        definitions
    }
}

fn operation(route: &Route, schemas: &mut Schemas) -> Value {
    let description = &route.description;
    let mut operation = json!({
        "operationId": description.id,
        "tags": [description.tag],
        "summary": description.summary,
    });
    if !description.text.is_empty() {
        operation["description"] = json!(description.text);
    }
    if description.is_deprecated {
        operation["deprecated"] = json!(true);
    }
    if route.access() == Access::Open {
        operation["security"] = json!([]);
    }
    let in_path = variables(route.path()).map(path_parameter);
    let in_query = description.parameters.iter().map(query_parameter);
    let parameters: Vec<_> = in_path.chain(in_query).collect();
    if !parameters.is_empty() {
        operation["parameters"] = json!(parameters);
    }
    if let Some(body) = &description.body {
        operation["requestBody"] = request_body(body, schemas);
    }
    operation["responses"] = responses(description, route.access(), schemas);
    operation
}

fn responses(description: &Description, access: Access, schemas: &mut Schemas) -> Value {
    let mut responses = Map::new();
    for response in &description.responses {
        responses.insert(response.status.to_string(), describe(response, schemas));
    }
    for (status, failure) in failures(description, access) {
        // An operation's own response, such as a failed health check, takes precedence.
        responses.entry(status.to_string()).or_insert(failure);
    }
    Value::Object(responses)
}

fn describe(response: &Response, schemas: &mut Schemas) -> Value {
    let mut described = json!({
        "description": response.text,
        "headers": {"X-Request-Id": request_id()},
    });
    if let Some(schema) = response.schema {
        let schema = schema(&mut schemas.of_responses);
        described["content"] = json!({response.media_type: media(&schema, &response.examples)});
    }
    described
}

fn request_body(body: &Body, schemas: &mut Schemas) -> Value {
    let schema = (body.schema)(&mut schemas.of_requests);
    json!({
        "required": body.is_required,
        "content": {JSON: media(&schema, &body.examples)},
    })
}

fn media(schema: &Schema, examples: &[Example]) -> Value {
    let mut media = json!({"schema": schema});
    if !examples.is_empty() {
        let examples = examples
            .iter()
            .map(|(name, value)| ((*name).to_owned(), json!({"value": value})));
        media["examples"] = Value::Object(examples.collect());
    }
    media
}

fn query_parameter(parameter: &Parameter) -> Value {
    let mut description = json!({
        "name": parameter.name,
        "in": "query",
        "required": parameter.is_required,
        "description": parameter.text,
        "schema": parameter.schema,
    });
    if let Some(example) = &parameter.example {
        description["example"] = example.clone();
    }
    description
}

fn variables(path: &str) -> impl Iterator<Item = &str> {
    path.split('/')
        .filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'))
}

/// Describes a variable segment; all of them are ids.
fn path_parameter(name: &str) -> Value {
    let text = match name {
        "certificate_id" => {
            "The id of a certificate from `GET /api/v1/certificates`; not the id of a version."
        }
        "permission_id" => "The id of a permission.",
        _ => "The id of a credential version.",
    };
    json!({
        "name": name,
        "in": "path",
        "required": true,
        "description": text,
        "schema": {"type": "string", "format": "uuid"},
    })
}

fn security_schemes() -> Value {
    json!({
        "bearerToken": {
            "type": "http",
            "scheme": "bearer",
            "bearerFormat": "JWT",
            "description": "An access token from the identity provider whose URL `GET /info` returns, signed with RS256 or ES256. By default, it needs the scopes `credhub.read` and `credhub.write`.",
        },
        "clientCertificate": {
            "type": "mutualTLS",
            "description": "A client certificate from a CA that the server trusts, with an organizational unit `app:<version 4 UUID>`. If the request also has a token, the token determines the caller.",
        },
    })
}

/// Returns the error responses of an operation by status: the shared responses that apply to it, and its own. A shared response
/// is a reference, unless the operation has a condition of its own for this status.
fn failures(description: &Description, access: Access) -> Vec<(u16, Value)> {
    let is_shared = |(_, _, applies_to, _): &&Shared| match applies_to {
        Routes::All => true,
        Routes::Authenticated => access != Access::Open,
        Routes::WithBody => description.body.is_some(),
    };
    let shared: Vec<_> = SHARED.iter().filter(is_shared).collect();
    let mut statuses: Vec<_> = shared.iter().map(|(_, status, ..)| *status).collect();
    statuses.extend(description.errors.iter().map(|(status, _)| *status));
    statuses.sort_unstable();
    statuses.dedup();
    let response_of = |status: u16| {
        let shared = shared.iter().find(|(_, of, ..)| *of == status);
        let own = description.errors.iter().filter(|(of, _)| *of == status);
        let own: Vec<_> = own.map(|(_, when)| *when).collect();
        match (shared, own.as_slice()) {
            (Some((name, ..)), []) => json!({"$ref": format!("#/components/responses/{name}")}),
            (shared, own) => error_response(status, shared.copied(), own),
        }
    };
    statuses
        .into_iter()
        .map(|status| (status, response_of(status)))
        .collect()
}

fn shared_responses() -> Map<String, Value> {
    let responses = SHARED.iter().map(|shared| {
        let (name, status, ..) = *shared;
        (name.to_owned(), error_response(status, Some(shared), &[]))
    });
    responses.collect()
}

fn shared_headers() -> Value {
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

fn request_id() -> Value {
    json!({"$ref": "#/components/headers/RequestId"})
}

fn error_response(status: u16, shared: Option<&Shared>, own: &[&str]) -> Value {
    let own = own.iter().copied();
    let texts: Vec<_> = own.chain(shared.map(|(.., when)| *when)).collect();
    let mut headers = json!({"X-Request-Id": request_id()});
    match status {
        401 => {
            headers["WWW-Authenticate"] = json!({"$ref": "#/components/headers/WwwAuthenticate"});
        }
        429 | 503 => headers["Retry-After"] = json!({"$ref": "#/components/headers/RetryAfter"}),
        _ => {}
    }
    let mut content = json!({"schema": {"$ref": "#/components/schemas/Failure"}});
    if let Some(examples) = error_examples().get(status.to_string()) {
        content["examples"] = examples.clone();
    }
    json!({
        "description": texts.join(" "),
        "headers": headers,
        "content": {JSON: content},
    })
}

const INTRODUCTION: &str = "\
Keywright stores and generates credentials: passwords, users, certificates and CAs, RSA and SSH keys, JSON, and the types of \
configured generators.

Requests need an access token or a client certificate, except where the operation lists no security. Permissions determine what \
a caller may do. The response for a credential that the caller may not read is the same as for a missing credential.

Paths may end with a slash. A method that a path does not support gets status 404 without a body. HEAD is supported wherever GET \
is, except in read-only mode. Unknown query parameters are ignored; repeated known parameters get status 400. Bodies with \
unknown or duplicate fields are rejected. A boolean or a whole number in a body may also be sent as a string, and a string \
parameter of a credential also as a number or a boolean. Times are UTC, in whole seconds.";

/// An error response of several routes: its name, its status, the routes, and its condition.
type Shared = (&'static str, u16, Routes, &'static str);

/// The routes with a shared error response.
#[derive(Clone, Copy)]
enum Routes {
    All,
    Authenticated,
    WithBody,
}

macro_rules! shared {
    ($($name:ident $status:literal $routes:ident => $when:literal,)*) => {
        const SHARED: &[Shared] = &[$((stringify!($name), $status, Routes::$routes, $when)),*];
    };
}

shared! {
    BodyRefused 400 WithBody => "The body is malformed or does not match the schema, or its media type is not JSON.",
    Unauthenticated 401 Authenticated => "The request has neither a valid access token nor a valid client certificate. The error for an expired token is `access_token_expired`.",
    Forbidden 403 Authenticated => "The access token lacks a required scope.",
    BodyTooSlow 408 WithBody => "The body took too long to arrive.",
    TooLarge 413 WithBody => "The body is too large.",
    UriTooLong 414 All => "The path and query are too long.",
    TooManyRequests 429 Authenticated => "The caller has too many requests in progress, or exceeds its request rate.",
    HeadTooLarge 431 All => "The request has too many header fields, or they are too large.",
    InternalError 500 All => "Internal error. The server logs the cause with the request's id.",
    Unavailable 503 Authenticated => "The database or another dependency is unavailable, the server has too many requests in progress, or it is in read-only mode and the request could write.",
}

fn error_examples() -> Value {
    json!({
        "400": {"malformed": {"value": {"error": "the request body is malformed; it must be a JSON object in UTF-8"}}},
        "401": {
            "absent": {"value": {"error": "access_denied", "error_description": "the request requires an access token, or a client certificate if the server accepts one"}},
            "expired": {"value": {"error": "access_token_expired", "error_description": "the access token has expired"}},
        },
        "403": {"scope": {"value": {"error": "insufficient_scope", "error_description": "the access token lacks a required scope"}}},
        "404": {"absent": {"value": {"error": "the credential does not exist or the caller may not access it"}}},
        "408": {"too-slow": {"value": {"error": "the request body took too long to arrive"}}},
        "409": {"exists": {"value": {"error": "the actor already has a permission on this path; change its operations instead"}}},
        "413": {"too-large": {"value": {"error": "the value of a credential must have at most 65536 bytes"}}},
        "414": {"too-long": {"value": {"error": "the path and the query of a request must have at most 8192 bytes"}}},
        "422": {"unknown-field": {"value": {"error": "the request has the unknown field lenght"}}},
        "429": {"too-many": {"value": {"error": "the caller makes too many requests; try again later"}}},
        "431": {"too-many-fields": {"value": {"error": "a request must have at most 100 header fields"}}},
        "500": {"storage": {"value": {"error": "the storage failed"}}},
        "503": {
            "read-only": {"value": {"error": "the server is in read-only mode and rejects writes"}},
            "unavailable": {"value": {"error": "the database is not available; try again later"}},
        },
        "501": {"no-resolver": {"value": {"error": "this server has no resolver plugin configured and can't interpolate"}}},
    })
}
