//! Putting the description together.

#![expect(
    clippy::indexing_slicing,
    reason = "a member that is not there is made"
)]

use schemars::{Schema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value, json};

use super::{
    failures::{failures, request_id, shared_headers, shared_responses},
    operation::{Answer, Body, Content, Described, Example, JSON, Parameter, Tag},
};
use crate::{Access, Information, Route, response::FailureBody, routes};

/// The description.
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
        "servers": [{"url": "/", "description": "The server that this description comes from."}],
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

/// What makes the schemas of requests, and what makes those of answers: a member that may be absent in one need not be in the
/// other. All of them stand in one place, by their names.
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
        // What is answered with its own body, such as that a server is not well, is no failure of the request.
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

/// The names of a path's variable segments.
fn variables(path: &str) -> impl Iterator<Item = &str> {
    path.split('/')
        .filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'))
}

/// A variable segment: all of them are ids.
fn of_path(name: &str) -> Value {
    let text = match name {
        "certificate_id" => {
            "The id of a certificate, as `GET /api/v1/certificates` tells it: that of the credential, not of a version."
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
            "description": "An access token of the identity provider that `GET /info` names, signed with RS256 or ES256, with the scopes `credhub.read` and `credhub.write` unless the server is configured otherwise.",
        },
        "clientCertificate": {
            "type": "mutualTLS",
            "description": "A certificate for client authentication, from an authority that the server is configured to trust, whose Organization Unit is `app:` and a version 4 UUID. Where a token is sent too, the token decides who is asking.",
        },
    })
}

const INTRODUCTION: &str = "\
Keywright stores and makes credentials: passwords, users, certificates and their authorities, RSA and SSH keys, free JSON, and \
whatever else generators are configured for.

Every request needs an access token or a client certificate, but for those whose security is empty. A caller may do what a \
permission allows; what it may not read is answered as if it were not there.

Paths are taken with a trailing slash too. A method that a path does not have is answered with 404 and no body; HEAD is \
taken wherever GET is, but for read-only mode. Parameters of a query that are not known are ignored; one that is given twice is answered with 400. Where a \
body has a member that is not known, or one twice, it is refused. Booleans and whole numbers are also accepted as strings, and numbers and booleans as parameters that are strings. \
Times are UTC, in whole seconds.";
