//! Assembles the description.

#![expect(clippy::indexing_slicing, reason = "indexing creates missing keys")]

use schemars::{Schema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value, json};

use super::{
    failures::{failures, request_id, shared_headers, shared_responses},
    operation::{Answer, Body, Content, Described, Example, JSON, Parameter, Tag},
};
use crate::{Access, Information, Route, response::FailureBody, routes};

/// Returns the description.
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
    let tags = Tag::ALL.map(|tag| json!({"name": tag.name(), "description": tag.text()}));
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

/// The schema generators for requests and for responses, because a field may be optional in only one of them. Their
/// definitions share one namespace.
struct Schemas {
    of_requests: SchemaGenerator,
    of_answers: SchemaGenerator,
}

impl Schemas {
    fn new() -> Self {
        let settings = || {
            SchemaSettings::draft2020_12().with(|settings| {
                settings.definitions_path = "/components/schemas".into();
                settings.meta_schema = None;
            })
        };
        let mut schemas = Self {
            of_requests: settings().for_deserialize().into_generator(),
            of_answers: settings().for_serialize().into_generator(),
        };
        schemas.of_answers.subschema_for::<FailureBody<'_>>();
        schemas
    }

    fn into_definitions(mut self) -> Map<String, Value> {
        let mut definitions = self.of_requests.take_definitions(true);
        definitions.extend(self.of_answers.take_definitions(true));
        definitions.sort_keys();
        definitions
    }
}

fn operation(route: &Route, schemas: &mut Schemas) -> Value {
    let described = route.described();
    let mut operation = json!({
        "operationId": described.id,
        "tags": [described.tag.name()],
        "summary": described.summary,
    });
    if !described.text.is_empty() {
        operation["description"] = json!(described.text);
    }
    if described.is_deprecated {
        operation["deprecated"] = json!(true);
    }
    if route.access() == Access::Open {
        operation["security"] = json!([]);
    }
    let of_path = variables(route.path()).map(of_path);
    let of_query = described.parameters.iter().map(of_query);
    let parameters: Vec<_> = of_path.chain(of_query).collect();
    if !parameters.is_empty() {
        operation["parameters"] = json!(parameters);
    }
    if let Some(body) = &described.body {
        operation["requestBody"] = request_body(body, schemas);
    }
    operation["responses"] = responses(&described, route.access(), schemas);
    operation
}

fn responses(described: &Described, access: Access, schemas: &mut Schemas) -> Value {
    let mut responses = Map::new();
    for answer in &described.answers {
        responses.insert(answer.status.to_string(), response(answer, schemas));
    }
    for (status, failure) in failures(described, access) {
        // An operation's own response, such as a failed health check, takes precedence.
        responses.entry(status.to_string()).or_insert(failure);
    }
    Value::Object(responses)
}

fn response(answer: &Answer, schemas: &mut Schemas) -> Value {
    let mut response = json!({
        "description": answer.text,
        "headers": {"X-Request-Id": request_id()},
    });
    if let Some(content) = &answer.content {
        let schema = (content.schema)(&mut schemas.of_answers);
        let Content {
            media_type,
            examples,
            ..
        } = content;
        response["content"] = json!({*media_type: media(&schema, examples)});
    }
    response
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
        let examples = examples.iter().map(|example| {
            let value = json!({"value": example.value});
            (example.name.to_owned(), value)
        });
        media["examples"] = Value::Object(examples.collect());
    }
    media
}

fn of_query(parameter: &Parameter) -> Value {
    let mut described = json!({
        "name": parameter.name,
        "in": "query",
        "required": parameter.is_required,
        "description": parameter.text,
        "schema": parameter.schema,
    });
    if let Some(example) = &parameter.example {
        described["example"] = example.clone();
    }
    described
}

/// Returns the names of a path's variable segments.
fn variables(path: &str) -> impl Iterator<Item = &str> {
    path.split('/')
        .filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'))
}

/// Describes a variable segment; all of them are ids.
fn of_path(name: &str) -> Value {
    let text = match name {
        "certificate_id" => {
            "The id of a certificate from `GET /api/v1/certificates`; not the id of a version."
        }
        "permission_id" => "The id of a permission.",
        _ => "The id of a version.",
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
            "description": "An access token from the identity provider returned by `GET /info`, signed with RS256 or ES256. It needs the scopes `credhub.read` and `credhub.write`, unless the server is configured otherwise.",
        },
        "clientCertificate": {
            "type": "mutualTLS",
            "description": "A client certificate from a CA that the server trusts, with an organizational unit of `app:` and a version 4 UUID. If the request also has a token, the token determines the caller.",
        },
    })
}

const INTRODUCTION: &str = "\
Keywright stores and generates credentials: passwords, users, certificates and CAs, RSA and SSH keys, JSON, and the types of \
configured generators.

Requests need an access token or a client certificate, except where the operation lists no security. Permissions determine what \
a caller may do. The response for a credential that the caller may not read is the same as for one that does not exist.

Paths may end with a slash. A method that a path does not support gets status 404 without a body. HEAD is supported wherever GET \
is, except in read-only mode. Unknown query parameters are ignored; repeated ones get status 400. Bodies with unknown or \
duplicate fields are rejected. Booleans and whole numbers are also accepted as strings, and string parameters as numbers and \
booleans. Times are UTC, in whole seconds.";
