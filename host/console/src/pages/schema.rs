//! The JSON Schemas of plugins: the secret fields of a value, and the form for parameters.

use keywright_core::{
    Secret,
    credential::{KnownType, RequestedParameters},
};
use maud::{Markup, html};
use serde_json::Value;
use zeroize::Zeroizing;

use crate::request::Fields;

/// The value schema of a type. Without a schema, every field is secret.
pub(super) struct ValueSchema(Value);

pub(super) struct Field {
    /// Its name; `value` for a value without fields.
    pub(super) name: String,
    /// Whether the schema declares the field and does not mark it as secret, and its text contains no private key: users can set
    /// a certificate whose text also contains a key.
    pub(super) is_public: bool,
    /// Its text; for other JSON, the JSON.
    pub(super) text: Zeroizing<String>,
}

impl ValueSchema {
    pub(super) fn of(known: Option<&KnownType>) -> Self {
        let schema = known.and_then(|known| keywright_json::read(&known.value_schema).ok());
        Self(schema.unwrap_or_default())
    }

    /// Returns the fields of a value, except null. A value of a type whose schema declares no fields is one secret field.
    pub(super) fn fields(&self, value: &Secret) -> Vec<Field> {
        let json = value.expose();
        let declared = self.0.get("properties").and_then(Value::as_object);
        let fields = keywright_json::fields(json).ok();
        let Some((declared, fields)) = declared.zip(fields) else {
            return vec![Field {
                name: WHOLE_VALUE.to_owned(),
                is_public: false,
                text: text_of(json),
            }];
        };
        let is_secret = is_true(&self.0, "writeOnly");
        let fields = fields
            .into_iter()
            .filter(|(_, field)| field.get() != "null");
        let fields = fields.map(|(name, field)| {
            let text = text_of(field.get());
            let declared = declared.get(&name).filter(|schema| schema.is_object());
            let is_public = declared.is_some_and(is_public);
            Field {
                is_public: !is_secret && is_public && !text.contains(PRIVATE_KEY),
                text,
                name,
            }
        });
        fields.collect()
    }
}

/// Returns whether a schema marks no part of a value as secret. A schema that refers to others is not evaluated.
fn is_public(schema: &Value) -> bool {
    match schema {
        Value::Object(keywords) => {
            let mut keywords = keywords.iter();
            !is_true(schema, "writeOnly")
                && keywords.all(|(keyword, argument)| match keyword.as_str() {
                    "$ref" | "allOf" | "anyOf" | "oneOf" => false,
                    _ => is_public(argument),
                })
        }
        Value::Array(items) => items.iter().all(is_public),
        _ => true,
    }
}

fn is_true(schema: &Value, key: &str) -> bool {
    schema.get(key) == Some(&Value::Bool(true))
}

fn text_of(json: &str) -> Zeroizing<String> {
    Zeroizing::new(keywright_json::text(json).unwrap_or_else(|_| json.to_owned()))
}

pub(super) struct ParameterForm(Vec<Parameter>);

struct Parameter {
    name: String,
    schema: Value,
    is_required: bool,
    input: Input,
}

enum Input {
    Boolean,
    /// One of these values.
    Choice(Vec<Value>),
    /// Several of these texts.
    Choices(Vec<String>),
    /// Texts, one per line.
    Lines,
    Integer,
    Number,
    Text,
    /// Any JSON.
    Json,
}

impl ParameterForm {
    /// Creates a form from the schema of parameters. Parameters that can't be sent (`readOnly`) are omitted.
    pub(super) fn of(schema: &str) -> Self {
        let schema: Value = keywright_json::read(schema).unwrap_or_default();
        let required = schema.get("required").and_then(Value::as_array);
        let is_required =
            |name: &str| required.is_some_and(|all| all.iter().any(|one| one == name));
        let properties = schema.get("properties").and_then(Value::as_object);
        let properties = properties.into_iter().flatten();
        let sendable = properties.filter(|(_, schema)| !is_true(schema, "readOnly"));
        let parameters = sendable.map(|(name, schema)| Parameter {
            is_required: is_required(name),
            input: Input::of(schema),
            name: name.clone(),
            schema: schema.clone(),
        });
        Self(parameters.collect())
    }

    /// Renders the inputs, with the values of a form that was refused.
    pub(super) fn render(&self, entered: Option<&Fields>) -> Markup {
        html! {
            @for parameter in &self.0 { (parameter.render(entered)) }
            @if self.0.is_empty() { p { "This type has no parameters." } }
        }
    }

    /// Reads the parameters of a form. Empty inputs are omitted, so that the plugin applies its defaults, unless the user chose an
    /// empty text.
    ///
    /// # Errors
    /// A message that names the parameter.
    pub(super) fn read(&self, form: &Fields) -> Result<RequestedParameters, String> {
        let mut requested = RequestedParameters::default();
        for parameter in &self.0 {
            let read = parameter.read(form);
            let read = read.map_err(|expected| format!("{} must be {expected}", parameter.name))?;
            if let Some(json) = read {
                requested.insert(&parameter.name, json);
            }
        }
        Ok(requested)
    }
}

impl Input {
    fn of(schema: &Value) -> Self {
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            let values = values.iter().filter(|value| !is_unset(value));
            return Self::Choice(values.cloned().collect());
        }
        let of_items = schema.get("items");
        let choices = of_items
            .and_then(|items| items.get("enum"))
            .and_then(Value::as_array);
        match type_of(schema) {
            Some("boolean") => Self::Boolean,
            Some("integer") => Self::Integer,
            Some("number") => Self::Number,
            Some("string") => Self::Text,
            Some("array") => match choices {
                Some(choices) if choices.iter().all(Value::is_string) => {
                    let choices = choices.iter().filter_map(Value::as_str);
                    Self::Choices(choices.map(str::to_owned).collect())
                }
                None if of_items.and_then(type_of) == Some("string") => Self::Lines,
                _ => Self::Json,
            },
            _ => Self::Json,
        }
    }
}

/// Returns the only type of a schema except null.
fn type_of(schema: &Value) -> Option<&str> {
    match schema.get("type")? {
        Value::String(only) => Some(only),
        Value::Array(several) => {
            let mut others = several
                .iter()
                .filter_map(Value::as_str)
                .filter(|one| *one != "null");
            let first = others.next()?;
            others.next().is_none().then_some(first)
        }
        _ => None,
    }
}

impl Parameter {
    /// Returns the name of the input, which can't be the name of another field of the form.
    fn field(&self) -> String {
        format!("{PARAMETER_PREFIX}{}", self.name)
    }

    /// Returns the name of the checkbox that sends an empty text instead of the default.
    fn empty_field(&self) -> String {
        format!("{EMPTY_PREFIX}{}", self.name)
    }

    /// Returns whether an empty text can be sent and differs from the default.
    fn may_be_empty(&self) -> bool {
        let length_min = self.schema.get("minLength").and_then(Value::as_u64);
        matches!(self.input, Input::Text)
            && self.default().is_some()
            && length_min.unwrap_or_default() == 0
    }

    fn default(&self) -> Option<&Value> {
        let default = self.schema.get("default");
        default.filter(|default| !is_unset(default))
    }

    fn read(&self, form: &Fields) -> Result<Option<String>, &'static str> {
        let field = self.field();
        let text = form.text(&field);
        let value = match &self.input {
            Input::Boolean => {
                let value = Value::Bool(!text.is_empty());
                let default = self.default().cloned().unwrap_or(Value::Bool(false));
                return Ok((self.is_required || value != default).then(|| value.to_string()));
            }
            Input::Choices(_) => {
                let chosen: Vec<_> = form.all(&field).map(Value::from).collect();
                return Ok((!chosen.is_empty()).then(|| Value::from(chosen).to_string()));
            }
            // A text may consist of spaces, such as a separator.
            Input::Text if text.is_empty() => {
                let is_empty = self.may_be_empty() && !form.text(&self.empty_field()).is_empty();
                return Ok(is_empty.then(|| Value::from("").to_string()));
            }
            Input::Text => text.into(),
            _ if text.trim().is_empty() => return Ok(None),
            Input::Choice(values) => {
                let chosen = values.iter().find(|value| label(value) == text);
                chosen.cloned().ok_or("one of the listed values")?
            }
            Input::Lines => {
                let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
                lines.map(Value::from).collect()
            }
            Input::Integer => text
                .trim()
                .parse::<i64>()
                .map_err(|_| "a whole number")?
                .into(),
            Input::Number => text.trim().parse::<f64>().map_err(|_| "a number")?.into(),
            Input::Json => keywright_json::read(text).map_err(|_| "valid JSON")?,
        };
        Ok(Some(value.to_string()))
    }

    fn render(&self, entered: Option<&Fields>) -> Markup {
        let field = self.field();
        let help = format!("{field}-help");
        let described = self.schema.get("description").and_then(Value::as_str);
        let text = entered.map(|form| form.text(&field)).unwrap_or_default();
        html! {
            div.field {
                @match &self.input {
                    Input::Boolean => {
                        @let default = self.default() == Some(&Value::Bool(true));
                        @let is_checked = entered.map_or(default, |_| !text.is_empty());
                        label {
                            input type="checkbox" name=(field) value="true" checked[is_checked] aria-describedby=(help);
                            " " (self.name)
                        }
                    }
                    Input::Choices(choices) => {
                        fieldset aria-describedby=(help) {
                            legend { (self.name) }
                            @for choice in choices {
                                @let is_checked = entered.is_some_and(|form| form.all(&field).any(|one| one == choice));
                                label { input type="checkbox" name=(field) value=(choice) checked[is_checked]; " " (choice) }
                            }
                        }
                    }
                    _ => {
                        label for=(field) { (self.name) @if self.is_required { " (required)" } }
                        (self.single(&field, &help, text))
                        @if self.may_be_empty() {
                            @let name = self.empty_field();
                            @let is_checked = entered.is_some_and(|form| !form.text(&name).is_empty());
                            label { input type="checkbox" name=(name) value="true" checked[is_checked]; " Empty instead of the default" }
                        }
                    }
                }
                p.help id=(help) { @if let Some(described) = described { (described) } }
            }
        }
    }

    fn single(&self, id: &str, help: &str, text: &str) -> Markup {
        let number = |key| self.schema.get(key).and_then(Value::as_i64);
        let placeholder = self.default().map(label);
        html! {
            @match &self.input {
                Input::Choice(values) => select id=(id) name=(id) aria-describedby=(help) {
                    option value="" { @match &placeholder { Some(default) => { "Default (" (default) ")" } None => "Not set" } }
                    @for value in values {
                        @let value = label(value);
                        option value=(value) selected[value == text] { (value) }
                    }
                },
                Input::Integer => input id=(id) name=(id) type="number" step="1" min=[number("minimum")]
                    max=[number("maximum")] value=(text) placeholder=[placeholder] required[self.is_required] aria-describedby=(help);,
                Input::Lines => textarea id=(id) name=(id) rows="3" placeholder="One per line" spellcheck="false"
                    required[self.is_required] aria-describedby=(help) { (text) },
                Input::Json => textarea id=(id) name=(id) rows="3" placeholder="JSON" spellcheck="false"
                    required[self.is_required] aria-describedby=(help) { (text) },
                _ => input id=(id) name=(id) value=(text) maxlength=[number("maxLength")] placeholder=[placeholder]
                    required[self.is_required] autocomplete="off" spellcheck="false" aria-describedby=(help);,
            }
        }
    }
}

/// Returns whether a value means that a parameter is not set. An empty input also means that.
fn is_unset(value: &Value) -> bool {
    value.is_null() || value == ""
}

/// Returns a value as text without quotes.
fn label(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// A part of the label of each private key (RFC 7468).
const PRIVATE_KEY: &str = "PRIVATE KEY";

/// The name of the only field of a value without declared fields.
const WHOLE_VALUE: &str = "value";

const PARAMETER_PREFIX: &str = "parameter.";
const EMPTY_PREFIX: &str = "empty.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_with_a_nested_secret_is_not_public() {
        let schema = r#"{"properties": {"peer": {"properties": {"key": {"writeOnly": true}}}}}"#;
        let schema = ValueSchema(keywright_json::read(schema).unwrap());
        let fields = schema.fields(&Secret::new(r#"{"peer":{"key":"a"}}"#.to_owned()));
        assert!(!fields[0].is_public);
    }

    #[test]
    fn a_text_of_spaces_and_a_required_flag_that_is_not_chosen_are_sent() {
        let schema = r#"{
            "properties": {
                "count": {"type": "integer"},
                "flag": {"type": "boolean"},
                "separator": {"type": "string", "default": "-"},
                "strict": {"type": "boolean"},
                "suffix": {"type": "string"}
            },
            "required": ["strict"]
        }"#;
        let query = "/?parameter.count=%20&parameter.separator=%20&parameter.suffix=";
        let entered = Fields::of_query(&query.parse().unwrap());
        let read = ParameterForm::of(schema).read(&entered).unwrap();
        let read: Vec<_> = read.iter().collect();
        assert_eq!(read, [("separator", "\" \""), ("strict", "false")]);
    }

    #[test]
    fn an_empty_text_is_only_sent_instead_of_a_default_if_chosen() {
        let schema = r#"{
            "properties": {
                "name": {"type": "string", "default": "a", "minLength": 1},
                "separator": {"type": "string", "default": "-"},
                "suffix": {"type": "string"}
            }
        }"#;
        let form = ParameterForm::of(schema);
        let shown = form.render(None).into_string();
        assert_eq!(shown.matches("checkbox").count(), 1, "{shown}");
        for (query, expected) in [
            ("/?parameter.separator=", None),
            (
                "/?empty.separator=true&empty.name=true&empty.suffix=true",
                Some("\"\""),
            ),
            (
                "/?empty.separator=true&parameter.separator=.",
                Some("\".\""),
            ),
        ] {
            let entered = Fields::of_query(&query.parse().unwrap());
            let read = form.read(&entered).unwrap();
            let read: Vec<_> = read.iter().collect();
            let expected: Vec<_> = expected
                .map(|json| ("separator", json))
                .into_iter()
                .collect();
            assert_eq!(read, expected, "{query}");
        }
    }
}
