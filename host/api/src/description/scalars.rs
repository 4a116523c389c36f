//! The schemas of names, times and other small things that many bodies hold.

use std::borrow::Cow;

use keywright_core::credential::{METADATA_CHARACTERS_MAX, NAME_CHARACTERS_MAX};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

/// The name of a credential that is written.
pub(crate) struct Name;

impl JsonSchema for Name {
    fn schema_name() -> Cow<'static, str> {
        "CredentialName".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "The name of a credential. A leading slash is prepended where it is absent, and counts. Casing is kept, and does not tell names apart.",
            "minLength": 1,
            "maxLength": NAME_CHARACTERS_MAX,
            "pattern": "^/?[A-Za-z0-9_.:()\\[\\]-]+(/[A-Za-z0-9_.:()\\[\\]-]+)*$",
        })
    }
}

/// The name of a credential that is looked up: one that is malformed is one that is not there.
pub(crate) struct LookedUpName;

impl JsonSchema for LookedUpName {
    fn schema_name() -> Cow<'static, str> {
        "LookedUpName".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "minLength": 1})
    }
}

/// A time as clients get it.
pub(crate) struct Timestamp;

impl JsonSchema for Timestamp {
    fn schema_name() -> Cow<'static, str> {
        "Timestamp".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "format": "date-time",
            "pattern": r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z$",
        })
    }
}

/// Any JSON that is kept beside a version.
pub(crate) struct Metadata;

impl JsonSchema for Metadata {
    fn schema_name() -> Cow<'static, str> {
        "Metadata".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": format!("Any JSON of at most {METADATA_CHARACTERS_MAX} characters, kept beside this version and no other; null for none."),
        })
    }
}

/// A boolean and the other forms in which it is accepted.
pub(crate) struct LenientBoolean;

impl JsonSchema for LenientBoolean {
    fn schema_name() -> Cow<'static, str> {
        "Boolean".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [
                {"type": "boolean"},
                {"enum": [0, 1]},
                {"type": "string", "pattern": "^([Tt][Rr][Uu][Ee]|[Ff][Aa][Ll][Ss][Ee])$"},
            ],
        })
    }
}
