//! The description of one route. It uses the types that the route's handler reads and renders.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Value, json};

use crate::Route;

pub(crate) struct Description {
    /// The operation's id, used by generated clients.
    pub(super) id: &'static str,
    pub(super) tag: Tag,
    /// The summary, on one line.
    pub(super) summary: &'static str,
    /// The description: paragraphs, with code between backticks.
    pub(super) text: &'static str,
    pub(super) is_deprecated: bool,
    pub(crate) parameters: Vec<Parameter>,
    pub(super) body: Option<Body>,
    pub(super) responses: Vec<Response>,
    /// The statuses of error responses, with their conditions. If routes share a response for a status, this condition is added
    /// to the shared condition.
    pub(super) errors: &'static [(u16, &'static str)],
}

/// A group of operations in the API description.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Tag {
    Credentials,
    Certificates,
    Permissions,
    Interpolation,
    Operations,
}

pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    pub(super) is_required: bool,
    pub(super) text: &'static str,
    pub(super) schema: Value,
    pub(super) example: Option<Value>,
}

pub(super) struct Body {
    pub(super) is_required: bool,
    pub(super) schema: SchemaOf,
    pub(super) examples: Vec<Example>,
}

pub(super) struct Response {
    pub(super) status: u16,
    pub(super) text: &'static str,
    pub(super) media_type: &'static str,
    /// `None` for a response without a body.
    pub(super) schema: Option<SchemaOf>,
    pub(super) examples: Vec<Example>,
}

pub(super) type Example = (&'static str, Value);

pub(super) type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

impl Description {
    pub(crate) fn new(
        id: &'static str,
        tag: Tag,
        summary: &'static str,
        errors: &'static [(u16, &'static str)],
    ) -> Self {
        Self {
            id,
            tag,
            summary,
            text: "",
            is_deprecated: false,
            parameters: Vec::new(),
            body: None,
            responses: Vec::new(),
            errors,
        }
    }
}

impl Route {
    pub(crate) fn text(mut self, text: &'static str) -> Self {
        self.description.text = text;
        self
    }

    pub(crate) fn deprecated(mut self) -> Self {
        self.description.is_deprecated = true;
        self
    }

    pub(crate) fn parameter(mut self, parameter: Parameter) -> Self {
        self.description.parameters.push(parameter);
        self
    }

    pub(crate) fn body<T: JsonSchema>(self) -> Self {
        self.body_of::<T>(true)
    }

    pub(crate) fn optional_body<T: JsonSchema>(self) -> Self {
        self.body_of::<T>(false)
    }

    fn body_of<T: JsonSchema>(mut self, is_required: bool) -> Self {
        self.description.body = Some(Body {
            is_required,
            schema: SchemaGenerator::subschema_for::<T>,
            examples: Vec::new(),
        });
        self
    }

    pub(crate) fn request_example(mut self, name: &'static str, value: Value) -> Self {
        if let Some(body) = &mut self.description.body {
            body.examples.push((name, value));
        }
        self
    }

    pub(crate) fn response<T: JsonSchema>(self, status: u16, text: &'static str) -> Self {
        self.response_in::<T>(status, text, JSON)
    }

    pub(crate) fn response_in<T: JsonSchema>(
        mut self,
        status: u16,
        text: &'static str,
        media_type: &'static str,
    ) -> Self {
        self.description.responses.push(Response {
            status,
            text,
            media_type,
            schema: Some(SchemaGenerator::subschema_for::<T>),
            examples: Vec::new(),
        });
        self
    }

    pub(crate) fn empty_response(mut self, status: u16, text: &'static str) -> Self {
        self.description.responses.push(Response {
            status,
            text,
            media_type: JSON,
            schema: None,
            examples: Vec::new(),
        });
        self
    }

    pub(crate) fn response_example(mut self, name: &'static str, value: Value) -> Self {
        if let Some(response) = self.description.responses.last_mut() {
            response.examples.push((name, value));
        }
        self
    }
}

impl Parameter {
    pub(crate) fn optional(name: &'static str, text: &'static str, schema: Value) -> Self {
        Self {
            name,
            is_required: false,
            text,
            schema,
            example: None,
        }
    }

    /// Creates a required, non-empty string parameter.
    pub(crate) fn required(name: &'static str, text: &'static str) -> Self {
        Self {
            is_required: true,
            ..Self::optional(name, text, json!({"type": "string", "minLength": 1}))
        }
    }

    pub(crate) fn one_of(self, values: &[&str]) -> Self {
        Self {
            schema: json!({"type": "string", "enum": values}),
            ..self
        }
    }

    pub(crate) fn example(self, example: impl Into<Value>) -> Self {
        Self {
            example: Some(example.into()),
            ..self
        }
    }
}

impl Tag {
    pub(super) const ALL: [Self; 5] = [
        Self::Credentials,
        Self::Certificates,
        Self::Permissions,
        Self::Interpolation,
        Self::Operations,
    ];

    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Credentials => {
                "Setting, generating, regenerating, reading, finding and deleting credentials of any type."
            }
            Self::Certificates => "Certificate versions, and the rotation of CAs without downtime.",
            Self::Permissions => "Permissions of actors on credentials.",
            Self::Interpolation => "Resolving credential references in documents.",
            Self::Operations => "The server's health, version, configuration and mode.",
        }
    }
}

/// The media type of most bodies.
pub(super) const JSON: &str = "application/json";
