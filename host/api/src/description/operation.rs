//! What the description says of one route. It stands beside the route's handler, and is made of the types that the handler
//! reads and renders.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Value, json};

/// What the description says of one route.
pub(crate) struct Described {
    /// The operation's id, by which clients made of the description call it.
    pub(super) id: &'static str,
    pub(super) tag: Tag,
    /// What it does, on one line.
    pub(super) summary: &'static str,
    /// What else is to be known: paragraphs, with code between backticks.
    pub(super) text: &'static str,
    pub(super) is_deprecated: bool,
    pub(super) parameters: Vec<Parameter>,
    pub(super) body: Option<Body>,
    pub(super) answers: Vec<Answer>,
    pub(super) failures: Vec<Failing>,
}

/// What routes are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tag {
    Credentials,
    Certificates,
    Permissions,
    Interpolation,
    Operations,
}

/// A parameter of a query.
pub(crate) struct Parameter {
    pub(super) name: &'static str,
    pub(super) is_required: bool,
    pub(super) text: &'static str,
    pub(super) schema: Value,
    pub(super) example: Option<Value>,
}

/// The body of a request.
pub(super) struct Body {
    pub(super) is_required: bool,
    pub(super) schema: SchemaOf,
    pub(super) examples: Vec<Example>,
}

/// An answer to a request that succeeds.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) text: &'static str,
    /// None where there is no body.
    pub(super) content: Option<Content>,
}

/// The body of an answer.
pub(super) struct Content {
    pub(super) media_type: &'static str,
    pub(super) schema: SchemaOf,
    pub(super) examples: Vec<Example>,
}

/// A status that tells of a failure, and when it is answered.
pub(super) struct Failing {
    pub(super) status: u16,
    pub(super) when: &'static str,
}

/// A body that was really sent or answered.
pub(super) struct Example {
    pub(super) name: &'static str,
    pub(super) value: Value,
}

/// Makes a type's schema.
pub(super) type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

impl Described {
    pub(crate) fn new(id: &'static str, tag: Tag, summary: &'static str) -> Self {
        Self {
            id,
            tag,
            summary,
            text: "",
            is_deprecated: false,
            parameters: Vec::new(),
            body: None,
            answers: Vec::new(),
            failures: Vec::new(),
        }
    }

    /// Says what else is to be known.
    pub(crate) fn text(self, text: &'static str) -> Self {
        Self { text, ..self }
    }

    /// Says that new clients should not use it.
    pub(crate) fn deprecated(self) -> Self {
        Self {
            is_deprecated: true,
            ..self
        }
    }

    /// Adds a parameter of the query.
    pub(crate) fn parameter(mut self, parameter: Parameter) -> Self {
        self.parameters.push(parameter);
        self
    }

    /// Says what the body of the request is, which must be there.
    pub(crate) fn body<T: JsonSchema>(self) -> Self {
        self.body_of::<T>(true)
    }

    /// Says what the body of the request is, which may be left out.
    pub(crate) fn optional_body<T: JsonSchema>(self) -> Self {
        self.body_of::<T>(false)
    }

    fn body_of<T: JsonSchema>(self, is_required: bool) -> Self {
        Self {
            body: Some(Body {
                is_required,
                schema: |schemas| schemas.subschema_for::<T>(),
                examples: Vec::new(),
            }),
            ..self
        }
    }

    /// Adds an example of the body.
    pub(crate) fn asked(mut self, name: &'static str, value: Value) -> Self {
        if let Some(body) = &mut self.body {
            body.examples.push(Example { name, value });
        }
        self
    }

    /// Adds an answer with a JSON body.
    pub(crate) fn answer<T: JsonSchema>(self, status: u16, text: &'static str) -> Self {
        self.answer_in::<T>(status, text, JSON)
    }

    /// Adds an answer with a body of any kind.
    pub(crate) fn answer_in<T: JsonSchema>(
        mut self,
        status: u16,
        text: &'static str,
        media_type: &'static str,
    ) -> Self {
        self.answers.push(Answer {
            status,
            text,
            content: Some(Content {
                media_type,
                schema: |schemas| schemas.subschema_for::<T>(),
                examples: Vec::new(),
            }),
        });
        self
    }

    /// Adds an answer without a body.
    pub(crate) fn empty_answer(mut self, status: u16, text: &'static str) -> Self {
        self.answers.push(Answer {
            status,
            text,
            content: None,
        });
        self
    }

    /// Adds an example of the answer that was added last.
    pub(crate) fn answered(mut self, name: &'static str, value: Value) -> Self {
        let last = self.answers.last_mut();
        if let Some(content) = last.and_then(|answer| answer.content.as_mut()) {
            content.examples.push(Example { name, value });
        }
        self
    }

    /// Says when a failure is answered, beyond what holds for every route.
    pub(crate) fn fails(mut self, status: u16, when: &'static str) -> Self {
        self.failures.push(Failing { status, when });
        self
    }
}

impl Parameter {
    /// A parameter that may be left out.
    pub(crate) fn optional(name: &'static str, text: &'static str, schema: Value) -> Self {
        Self {
            name,
            is_required: false,
            text,
            schema,
            example: None,
        }
    }

    /// A parameter that is a text, and must be given and not be empty.
    pub(crate) fn required(name: &'static str, text: &'static str) -> Self {
        Self {
            is_required: true,
            ..Self::optional(name, text, json!({"type": "string", "minLength": 1}))
        }
    }

    /// Says that it must be one of these.
    pub(crate) fn one_of(self, values: &[&str]) -> Self {
        Self {
            schema: json!({"type": "string", "enum": values}),
            ..self
        }
    }

    /// Adds an example.
    pub(crate) fn like(self, example: impl Into<Value>) -> Self {
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

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Credentials => "credentials",
            Self::Certificates => "certificates",
            Self::Permissions => "permissions",
            Self::Interpolation => "interpolation",
            Self::Operations => "operations",
        }
    }

    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Credentials => {
                "Setting, generating, regenerating, reading, finding and deleting credentials of any type."
            }
            Self::Certificates => {
                "The versions of certificates, and replacing an authority without shutting anyone out."
            }
            Self::Permissions => "Who may do what with which credentials.",
            Self::Interpolation => {
                "Putting the values of credentials into documents that refer to them."
            }
            Self::Operations => "What the server says of itself, and its mode.",
        }
    }
}

/// The media type of nearly all bodies.
pub(super) const JSON: &str = "application/json";
