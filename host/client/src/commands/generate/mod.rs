//! `keywright generate` and `keywright regenerate`.

mod check;

use std::path::PathBuf;

use clap::{Args, ValueHint};
use serde::Serialize;
use serde_json::{Map, Value};

use super::{
    get,
    run::{CommandError, Completion, Context, Run, help},
};
use crate::{
    GenerateCredential, GenerateMode, KnownType, SecretJson,
    input::{json_object, metadata, number, text_of},
};

/// Generate a credential
///
/// Use `--param` for parameters that have no option, such as parameters of types that plugins add. If the server describes the
/// parameters of its types (see `keywright types`), the client validates `--param` and `--parameters-file` before it sends them.
#[derive(Debug, Args)]
#[command(after_help = help(EXAMPLES))]
pub struct Generate {
    /// Name of the credential.
    name: String,
    /// Type of the credential.
    #[arg(long = "type", short = 't', value_name = "TYPE")]
    credential_type: String,
    /// Behavior if the credential exists. Default: converge.
    #[arg(long, value_enum, value_name = "MODE")]
    mode: Option<GenerateMode>,
    #[command(flatten)]
    parameters: Parameters,
    /// Metadata to store: a JSON object. Keywright encrypts it, CredHub does not.
    #[arg(long, value_name = "JSON", value_parser = metadata)]
    metadata: Option<SecretJson>,
}

impl Run for Generate {
    async fn run(self, context: &Context) -> Result<Completion, CommandError> {
        let client = context.client()?;
        let known = if self.parameters.need_description() {
            check::known_type(&client, &self.credential_type).await?
        } else {
            None
        };
        let parameters = self.parameters.merge(known.as_ref())?;
        if let Some(known) = &known {
            check::check(known, &parameters, |name| self.parameters.source(name))?;
        }
        let credential = GenerateCredential {
            name: self.name,
            credential_type: self.credential_type,
            mode: self.mode,
            parameters,
            metadata: self.metadata,
        };
        let version = client.generate_credential(&credential).await?;
        get::show(context, &version)
    }
}

/// Regenerate a credential with its stored parameters
///
/// Adds a version, generated with the parameters of the latest version.
#[derive(Debug, Args)]
#[command(after_help = help(REGENERATE_EXAMPLES))]
pub struct Regenerate {
    /// Name of the credential.
    name: String,
    /// Metadata to store: a JSON object. Keywright encrypts it, CredHub does not.
    #[arg(long, value_name = "JSON", value_parser = metadata)]
    metadata: Option<SecretJson>,
}

impl Run for Regenerate {
    async fn run(self, context: &Context) -> Result<Completion, CommandError> {
        let client = context.client()?;
        let version = client
            .regenerate_credential(&self.name, self.metadata.as_ref())
            .await?;
        get::show(context, &version)
    }
}

/// The parameters of a generation, with their names in the API.
#[derive(Debug, Args, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent flag")]
struct Parameters {
    /// Parameter of the type; may be repeated. For a list, separate the items by commas or repeat the parameter.
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_parameter)]
    #[serde(skip)]
    param: Vec<(String, String)>,
    /// JSON file with parameters; `-` for standard input. Other options override it.
    #[arg(long = "parameters-file", value_name = "FILE", value_hint = ValueHint::FilePath)]
    #[serde(skip)]
    file: Option<PathBuf>,
    /// Number of characters.
    #[arg(long, value_name = "COUNT", value_parser = number::<u64>, help_heading = PASSWORDS)]
    length: Option<u64>,
    /// Exclude the letters A-Z.
    #[arg(long, help_heading = PASSWORDS)]
    exclude_upper: bool,
    /// Exclude the letters a-z.
    #[arg(long, help_heading = PASSWORDS)]
    exclude_lower: bool,
    /// Exclude digits.
    #[arg(long, help_heading = PASSWORDS)]
    exclude_number: bool,
    /// Include special characters.
    #[arg(long, help_heading = PASSWORDS)]
    include_special: bool,
    /// Name of the user. Default: generated.
    #[arg(long, value_name = "NAME", help_heading = PASSWORDS)]
    username: Option<String>,
    /// Length of an RSA key in bits.
    #[arg(long, value_name = "BITS", value_parser = number::<u64>, help_heading = KEYS)]
    key_length: Option<u64>,
    /// Comment of an SSH key.
    #[arg(long, value_name = "TEXT", help_heading = KEYS)]
    ssh_comment: Option<String>,
    /// Common name of the subject.
    #[arg(long, value_name = "TEXT", help_heading = CERTIFICATES)]
    common_name: Option<String>,
    /// Organization of the subject.
    #[arg(long, value_name = "TEXT", help_heading = CERTIFICATES)]
    organization: Option<String>,
    /// Organizational unit of the subject.
    #[arg(long, value_name = "TEXT", help_heading = CERTIFICATES)]
    organization_unit: Option<String>,
    /// City of the subject.
    #[arg(long, value_name = "TEXT", help_heading = CERTIFICATES)]
    locality: Option<String>,
    /// State or province of the subject.
    #[arg(long, value_name = "TEXT", help_heading = CERTIFICATES)]
    state: Option<String>,
    /// Two-letter country code of the subject.
    #[arg(long, value_name = "CODE", help_heading = CERTIFICATES)]
    country: Option<String>,
    /// Subject alternative name: a host name or an address; may be repeated.
    #[arg(long = "alternative-name", value_name = "NAME", help_heading = CERTIFICATES)]
    alternative_names: Vec<String>,
    /// Key usage, such as `digital_signature`; may be repeated.
    #[arg(long, value_name = "USAGE", help_heading = CERTIFICATES)]
    key_usage: Vec<String>,
    /// Extended key usage, such as `server_auth`; may be repeated.
    #[arg(long, value_name = "USAGE", help_heading = CERTIFICATES)]
    extended_key_usage: Vec<String>,
    /// Validity period in days.
    #[arg(long, value_name = "DAYS", value_parser = number::<u64>, help_heading = CERTIFICATES)]
    duration: Option<u64>,
    /// Name of the stored CA that signs the certificate.
    #[arg(long, value_name = "NAME", help_heading = CERTIFICATES)]
    ca: Option<String>,
    /// Generate a CA.
    #[arg(long, help_heading = CERTIFICATES)]
    is_ca: bool,
    /// Generate a self-signed certificate.
    #[arg(long, help_heading = CERTIFICATES)]
    self_sign: bool,
}

impl Parameters {
    /// Returns whether the server's description of the type is needed to parse or validate the parameters.
    fn need_description(&self) -> bool {
        !self.param.is_empty() || self.file.is_some()
    }

    /// Merges the parameters of all options. Converts values of `--param` to the types that `known` describes, if present.
    fn merge(&self, known: Option<&KnownType>) -> Result<Map<String, Value>, CommandError> {
        let mut merged = match &self.file {
            None => Map::new(),
            Some(file) => json_object(&text_of(file)?)
                .map_err(|cause| CommandError::Usage(format!("--parameters-file: {cause}")))?,
        };
        let options = self.option_values()?;
        merged.extend(options.clone());
        let mut given: Vec<&str> = Vec::new();
        for (name, text) in &self.param {
            let schema = known.and_then(|known| known.parameters.get("properties")?.get(name));
            let value = convert(text, schema);
            match (merged.get_mut(name), value) {
                (Some(Value::Array(have)), Value::Array(more))
                    if given.contains(&name.as_str()) =>
                {
                    have.extend(more);
                }
                _ if options.contains_key(name) || given.contains(&name.as_str()) => {
                    return Err(CommandError::Usage(format!(
                        "--param {name}: duplicate parameter; give it once, with its option or with `--param`; only lists may be repeated"
                    )));
                }
                (_, value) => {
                    given.push(name);
                    merged.insert(name.clone(), value);
                }
            }
        }
        Ok(merged)
    }

    /// Returns the argument that contains a parameter, for messages.
    fn source(&self, name: &str) -> String {
        if self.param.iter().any(|(given, _)| given == name) {
            return format!("--param {name}");
        }
        match self.option_values() {
            Ok(values) if values.contains_key(name) => match name {
                "alternative_names" => "--alternative-name".to_owned(),
                name => format!("--{}", name.replace('_', "-")),
            },
            _ => format!("--parameters-file: {name}"),
        }
    }

    /// Returns the parameters of the options that are set.
    fn option_values(&self) -> Result<Map<String, Value>, CommandError> {
        let is_set = |value: &Value| match value {
            Value::Array(list) => !list.is_empty(),
            value => !matches!(value, Value::Null | Value::Bool(false)),
        };
        let Value::Object(mut values) = serde_json::to_value(self)? else {
            return Ok(Map::new());
        };
        values.retain(|_, value| is_set(value));
        Ok(values)
    }
}

fn parse_parameter(argument: &str) -> Result<(String, String), String> {
    match argument.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("must be NAME=VALUE".to_owned()),
    }
}

/// Converts a text by the parameter's schema. Without a schema, parses JSON other than strings, and keeps everything else as a
/// string. A text that does not match the schema stays a string, so that validation reports it.
fn convert(text: &str, schema: Option<&Value>) -> Value {
    let as_text = || Value::String(text.to_owned());
    let as_json = || keywright_json::read::<Value>(text).ok();
    let Some(schema) = schema else {
        let value = as_json().filter(|value| !value.is_string());
        return value.unwrap_or_else(as_text);
    };
    if allows_type(schema, "array") {
        if let Some(list @ Value::Array(_)) = as_json() {
            return list;
        }
        let items = schema.get("items");
        return text.split(',').map(|item| convert(item, items)).collect();
    }
    if allows_type(schema, "string") || !schema.is_object() {
        return as_text();
    }
    as_json().unwrap_or_else(as_text)
}

/// Returns whether a schema allows a JSON type. A schema without `type` allows strings if it is an `enum` of strings.
fn allows_type(schema: &Value, json_type: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(only)) => only == json_type,
        Some(Value::Array(several)) => several.iter().any(|one| one == json_type),
        _ => {
            let values = schema.get("enum").and_then(Value::as_array);
            json_type == "string"
                && values.is_some_and(|values| values.iter().all(Value::is_string))
        }
    }
}

const PASSWORDS: &str = "Parameters of passwords and users";
const KEYS: &str = "Parameters of keys";
const CERTIFICATES: &str = "Parameters of certificates";

pub(super) const EXAMPLES: &str = "\
# Generate a password of 40 characters
keywright generate /demo/token --type password --length 40
# Generate a CA
keywright generate /demo/root --type certificate --common-name root --is-ca
# Generate a certificate signed by the CA
$ keywright generate /demo/root --type certificate --common-name root --is-ca
keywright generate /demo/web --type certificate --common-name web --ca /demo/root --alternative-name web.example
# Pass parameters by name, as for types that plugins add
keywright generate /demo/pin --type password --param length=6 --param exclude_lower=true";

pub(super) const REGENERATE_EXAMPLES: &str = "\
# Generate a new password with the same parameters
$ keywright generate /demo/generated --type password --length 40
keywright regenerate /demo/generated";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parameters_are_converted_by_their_schema() {
        let texts = json!({"type": "array", "items": {"type": "string"}});
        let cases = [
            ("40", Some(json!({"type": "integer"})), json!(40)),
            ("40", Some(json!({"type": "string"})), json!("40")),
            ("40", Some(json!({"type": ["string", "null"]})), json!("40")),
            ("true", Some(json!({"type": "boolean"})), json!(true)),
            ("yes", Some(json!({"type": "boolean"})), json!("yes")),
            ("a,1", Some(texts.clone()), json!(["a", "1"])),
            (r#"["a,b"]"#, Some(texts), json!(["a,b"])),
            ("2048", Some(json!({"enum": [2048, 4096]})), json!(2048)),
            ("1", Some(json!({"enum": ["1", "2"]})), json!("1")),
            ("40", None, json!(40)),
            ("true", None, json!(true)),
            ("[1]", None, json!([1])),
            ("a b", None, json!("a b")),
            ("\"40\"", None, json!("\"40\"")),
        ];
        for (text, schema, expected) in cases {
            assert_eq!(
                convert(text, schema.as_ref()),
                expected,
                "{text} {schema:?}"
            );
        }
    }

    #[test]
    fn a_parameter_needs_a_name_and_a_value() {
        assert_eq!(
            parse_parameter("a=b=c"),
            Ok(("a".to_owned(), "b=c".to_owned()))
        );
        assert_eq!(parse_parameter("a="), Ok(("a".to_owned(), String::new())));
        assert!(parse_parameter("a").is_err());
        assert!(parse_parameter("=a").is_err());
    }
}
