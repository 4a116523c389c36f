//! The schemas of names, times and other small things that many bodies hold.

use std::borrow::Cow;

use keywright_core::{
    credential::{METADATA_CHARACTERS_MAX, NAME_CHARACTERS_MAX},
    permission::PERMISSION_PATH_CHARACTERS_MAX,
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

/// The name of a credential that is written.
pub(crate) struct Name;

impl JsonSchema for Name {
    fn schema_name() -> Cow<'static, str> {
        "CredentialName".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let description = "The name of a credential. A leading slash is prepended where it is absent, and counts. Casing is kept, and does not tell names apart.";
        absolute(description, NAME, NAME_CHARACTERS_MAX)
    }
}

/// The path of a permission that is added or replaced.
pub(crate) struct GrantedPath;

impl JsonSchema for GrantedPath {
    fn schema_name() -> Cow<'static, str> {
        "PermissionPath".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let description = "The full name of one credential, or a path that ends in `/*`: all names below it. A leading slash is prepended where it is absent, and counts. Casing counts.";
        let path = format!(r"({NAME}(/\*)?|\*)");
        absolute(description, &path, PERMISSION_PATH_CHARACTERS_MAX)
    }
}

/// The schema of a text of this form, to which the server prepends a slash if it has none. The slash counts.
fn absolute(description: &str, form: &str, characters_max: usize) -> Schema {
    json_schema!({
        "type": "string",
        "description": description,
        "minLength": 1,
        "maxLength": characters_max,
        "pattern": format!("^/?{form}$"),
        "if": {"pattern": "^[^/]"},
        "then": {"maxLength": characters_max - 1},
    })
}

/// The name of a credential without its leading slash, as a regular expression.
const NAME: &str = r"[A-Za-z0-9_.:()\[\]-]+(/[A-Za-z0-9_.:()\[\]-]+)*";

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
        let mut forms = vec![json!({"type": "boolean"})];
        forms.extend(Self::converted());
        json_schema!({"anyOf": forms})
    }
}

impl LenientBoolean {
    /// The forms other than a boolean itself.
    pub(super) fn converted() -> [Value; 2] {
        [
            json!({"enum": [0, 1]}),
            json!({"type": "string", "pattern": "^([Tt][Rr][Uu][Ee]|[Ff][Aa][Ll][Ss][Ee])$"}),
        ]
    }
}
