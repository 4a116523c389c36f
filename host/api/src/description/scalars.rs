//! The schemas of names, times and other common fields.

use std::borrow::Cow;

use keywright_core::{
    credential::{METADATA_CHARACTERS_MAX, NAME_CHARACTERS_MAX},
    permission::PERMISSION_PATH_CHARACTERS_MAX,
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

/// The name of a credential in a write request.
pub(crate) struct Name;

impl JsonSchema for Name {
    fn schema_name() -> Cow<'static, str> {
        "CredentialName".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let description = "The name of a credential. If the leading slash is missing, it is added, and counts towards the length. Case is preserved but not significant.";
        absolute(description, NAME, NAME_CHARACTERS_MAX)
    }
}

/// The path of a permission in a write request.
pub(crate) struct GrantedPath;

impl JsonSchema for GrantedPath {
    fn schema_name() -> Cow<'static, str> {
        "PermissionPath".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let description = "The full name of one credential, or a path that ends in `/*` for all names below it. If the leading slash is missing, it is added, and counts towards the length. Case-sensitive.";
        let path = format!(r"({NAME}(/\*)?|\*)");
        absolute(description, &path, PERMISSION_PATH_CHARACTERS_MAX)
    }
}

/// Returns the schema of a string with an optional leading slash, which counts towards the length if missing.
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

/// The name of a credential in a lookup. Malformed names match no credential.
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

/// A time in a response.
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

/// JSON metadata of a version.
pub(crate) struct Metadata;

impl JsonSchema for Metadata {
    fn schema_name() -> Cow<'static, str> {
        "Metadata".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": format!("Any JSON of at most {METADATA_CHARACTERS_MAX} characters, stored with this version only; null for none."),
        })
    }
}

/// A boolean, or a value that is converted to one.
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
    /// Returns the schemas of the converted values.
    pub(super) fn converted() -> [Value; 2] {
        [
            json!({"enum": [0, 1]}),
            json!({"type": "string", "pattern": "^([Tt][Rr][Uu][Ee]|[Ff][Aa][Ll][Ss][Ee])$"}),
        ]
    }
}
