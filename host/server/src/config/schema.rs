//! The configuration as a JSON Schema derived from the structs, for the reference and for checks.

use figment::Figment;
use jsonschema::{
    ValidationError,
    error::{TypeKind, ValidationErrorKind},
    paths::LocationSegment,
    types::JsonType,
};
use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Map, Value, json};

use super::{
    findings::Findings,
    source::{ignored_variable, joined, set_variable_within, variable},
};

/// Returns the JSON Schema of a configuration's type, without `$ref` and without null, which TOML does not have.
/// `enumDescriptions` describes the values of an enumeration, in the order of `enum`.
pub(super) fn schema_of<T: JsonSchema>() -> Value {
    let settings =
        SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let schema = settings.into_generator().into_root_schema_for::<T>();
    let mut schema = schema.to_value();
    simplify(&mut schema);
    schema
}

/// Returns the full names of all settings and sections. `NAME` is a name chosen by the operator, and `[]` an item of a
/// list.
fn names(schema: &Value) -> Vec<String> {
    let mut names = Vec::new();
    add_names(schema, "", &mut names);
    names
}

/// Returns the settings of a section, with their names within it.
pub(super) fn fields(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
}

/// The content of a setting.
pub(super) enum Content<'a> {
    Value,
    Section,
    /// Sections with names chosen by the operator.
    NamedSections(&'a Value),
    ListOfSections(&'a Value),
}

impl<'a> Content<'a> {
    /// Returns the content of a setting with this schema.
    pub(super) fn of(schema: &'a Value) -> Self {
        if schema.get("properties").is_some() {
            return Self::Section;
        }
        let has_fields = |part: &&Value| part.get("properties").is_some();
        if let Some(named) = schema.get("additionalProperties").filter(has_fields) {
            return Self::NamedSections(named);
        }
        match schema.get("items").filter(has_fields) {
            Some(item) => Self::ListOfSections(item),
            None => Self::Value,
        }
    }
}

fn add_names(schema: &Value, section: &str, names: &mut Vec<String>) {
    for (field, schema) in fields(schema) {
        let name = joined(section, field);
        match Content::of(schema) {
            Content::Value => {}
            Content::Section => add_names(schema, &name, names),
            Content::NamedSections(each) => add_names(each, &joined(&name, CHOSEN_NAME), names),
            Content::ListOfSections(each) => add_names(each, &format!("{name}[]"), names),
        }
        names.push(name);
    }
}

/// The placeholder, in full names, for a name chosen by the operator.
pub(super) const CHOSEN_NAME: &str = "NAME";

fn simplify(schema: &mut Value) {
    let Value::Object(schema) = schema else {
        return;
    };
    remove_null(schema);
    gather_enumeration(schema);
    for part in ["items", "additionalProperties"] {
        schema.get_mut(part).into_iter().for_each(simplify);
    }
    if let Some(Value::Object(fields)) = schema.get_mut("properties") {
        fields.values_mut().for_each(simplify);
    }
}

fn remove_null(schema: &mut Map<String, Value>) {
    if schema.get("default") == Some(&Value::Null) {
        schema.remove("default");
    }
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            schema.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(alternatives)) = schema.get_mut("anyOf") {
        alternatives.retain(|alternative| *alternative != json!({"type": "null"}));
        if let [Value::Object(only)] = alternatives.as_slice() {
            let only = only.clone();
            schema.remove("anyOf");
            for (keyword, value) in only {
                schema.entry(keyword).or_insert(value);
            }
        }
    }
}

/// Merges `oneOf` alternatives of one constant each into one `enum`. The generator creates such alternatives for enumerations
/// with described values.
fn gather_enumeration(schema: &mut Map<String, Value>) {
    let Some(Value::Array(alternatives)) = schema.get("oneOf") else {
        return;
    };
    let part = |name: &str| -> Option<Vec<Value>> {
        let parts = alternatives.iter();
        parts
            .map(|alternative| alternative.get(name).cloned())
            .collect()
    };
    let (Some(constants), Some(descriptions)) = (part("const"), part("description")) else {
        return;
    };
    schema.remove("oneOf");
    schema.insert("enum".to_owned(), constants.into());
    schema.insert("enumDescriptions".to_owned(), descriptions.into());
}

/// Reports unknown and missing settings and wrong types: everything that the schema alone can detect.
pub(crate) fn check(figment: &Figment, schema: &Value, findings: &mut Findings) {
    if let Some(name) = ignored_variable() {
        let what = format!("unknown environment variable {name}; {VARIABLES}");
        findings.mistake("the environment", what);
    }
    let known = names(schema);
    let configured: Value = match figment.extract() {
        Ok(configured) => configured,
        Err(cause) => return findings.mistake("the configuration", cause.kind),
    };
    // The schema comes from this program, and a test compiles it.
    let Ok(validator) = jsonschema::validator_for(schema) else {
        return;
    };
    for error in validator.iter_errors(&configured) {
        report(&error, schema, &known, findings);
    }
}

/// Reports an error without the value, which may be a secret. Numbers are not secrets.
fn report(error: &ValidationError<'_>, schema: &Value, known: &[String], findings: &mut Findings) {
    let setting = setting_at(error);
    match error.kind() {
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            for field in unexpected {
                let name = joined(&setting, field);
                let set = set_variable_within(&name);
                let unknown = set.as_ref().map_or_else(
                    || "unknown setting".to_owned(),
                    |set| format!("unknown environment variable {set}"),
                );
                let near = nearest(field, &setting, schema_at(error, schema), known);
                let what = match (near, set) {
                    // No variable sets an item of a list.
                    (Some(near), Some(set)) if !near.contains('[') => {
                        let within = match set.get(variable(&name).len()..) {
                            Some("") if is_section(&near, known) => "__NAME",
                            within => within.unwrap_or_default(),
                        };
                        format!("{unknown}; did you mean {}{within}?", variable(&near))
                    }
                    (Some(near), _) => format!("{unknown}; did you mean {near}?"),
                    (None, Some(_)) => format!("{unknown}; {VARIABLES}"),
                    (None, None) => unknown,
                };
                findings.mistake(name, what);
            }
        }
        ValidationErrorKind::Required { property } => {
            let field = property.as_str().unwrap_or_default();
            // A variable alone can create a section.
            let what = match set_variable_within(&setting) {
                Some(set) => format!("is missing ({set} in the environment sets {setting})"),
                None => "is missing".to_owned(),
            };
            findings.mistake(joined(&setting, field), what);
        }
        ValidationErrorKind::Minimum { .. } | ValidationErrorKind::Maximum { .. } => {
            findings.mistake(setting, format!("must be {}", range(error, schema)));
        }
        ValidationErrorKind::Enum { options } => {
            findings.mistake(setting, format!("must be one of {}", enumerated(options)));
        }
        ValidationErrorKind::Type { kind } => {
            let instance = error.instance();
            let found = match (kind, instance.as_ref()) {
                // Only where a number is expected: elsewhere, it may be a secret.
                (TypeKind::Single(JsonType::Integer), Value::Number(number)) => number.to_string(),
                (_, Value::Bool(_)) => "a boolean".to_owned(),
                (_, other) => type_name(&JsonType::from(other).to_string()),
            };
            let expected = match kind {
                TypeKind::Single(kind) => type_name(&kind.to_string()),
                TypeKind::Multiple(_) => "of another type".to_owned(),
            };
            let fix = match kind {
                TypeKind::Single(JsonType::Array) => list_fix(error, schema, &setting),
                _ => String::new(),
            };
            findings.mistake(setting, format!("must be {expected}, not {found}{fix}"));
        }
        _ => findings.mistake(setting, error.masked().to_string()),
    }
}

/// Returns how to correct a list that is a table or a string, after a semicolon. Empty if that is unknown.
fn list_fix(error: &ValidationError<'_>, schema: &Value, setting: &str) -> String {
    let variable = set_variable_within(setting).map(|_| variable(setting));
    match (
        error.instance().as_ref(),
        variable,
        Content::of(schema_at(error, schema)),
    ) {
        (Value::Object(_), Some(variable), _) => format!("; set the whole list with {variable}"),
        (Value::Object(_), None, Content::ListOfSections(_)) => format!("; write [[{setting}]]"),
        (Value::String(_), Some(_), Content::Value) => r#"; write it as ["a", "b"]"#.to_owned(),
        _ => String::new(),
    }
}

fn is_section(name: &str, known: &[String]) -> bool {
    let mut within = known.iter().filter_map(|known| known.strip_prefix(name));
    within.any(|rest| rest.starts_with('.'))
}

/// Returns the full name of the setting that has the error.
fn setting_at(error: &ValidationError<'_>) -> String {
    let mut name = String::new();
    for segment in error.instance_path() {
        name = match segment {
            LocationSegment::Property(field) => joined(&name, &field),
            LocationSegment::Index(index) => format!("{name}[{index}]"),
        };
    }
    name
}

/// Returns the schema of the setting that has the error.
fn schema_at<'a>(error: &ValidationError<'_>, schema: &'a Value) -> &'a Value {
    let keyword = error.schema_path().as_str();
    let setting = keyword.rsplit_once('/').map_or("", |(setting, _)| setting);
    schema.pointer(setting).unwrap_or(&Value::Null)
}

/// Returns the range of a setting whose number is out of range, and the number.
fn range(error: &ValidationError<'_>, schema: &Value) -> String {
    let schema = schema_at(error, schema);
    let bound = |keyword| schema.get(keyword);
    let number = error.instance();
    match (bound("minimum"), bound("maximum")) {
        (Some(min), Some(max)) => format!("from {min} to {max}, not {number}"),
        (Some(min), None) => format!("at least {min}, not {number}"),
        (None, max) => format!("at most {}, not {number}", max.unwrap_or(&Value::Null)),
    }
}

fn enumerated(options: &Value) -> String {
    let options = options.as_array().into_iter().flatten();
    let options: Vec<_> = options.filter_map(Value::as_str).collect();
    options.join(", ")
}

/// Returns the TOML name of a type.
fn type_name(name: &str) -> String {
    match name {
        "array" => "a list",
        "boolean" => "true or false",
        "integer" => "a whole number",
        "number" => "a number",
        "object" => "a table",
        "string" => "a string",
        other => other,
    }
    .to_owned()
}

/// Returns the setting that is most likely meant by an unknown field of a section: the only setting with the same last word, or
/// otherwise the setting of the section with the most similar spelling.
fn nearest(field: &str, setting: &str, section: &Value, known: &[String]) -> Option<String> {
    let mut elsewhere = known
        .iter()
        .filter(|known| known.rsplit('.').next() == Some(field));
    // If several sections have it, the intended one is unclear.
    if let (Some(only), None) = (elsewhere.next(), elsewhere.next()) {
        return Some(only.clone());
    }
    let distance_max = (field.len().saturating_sub(1) / 2).min(DISTANCE_MAX);
    fields(section)
        .map(|(known, _)| (strsim::osa_distance(field, known), known))
        .min()
        .filter(|(distance, _)| *distance <= distance_max)
        .map(|(_, known)| joined(setting, known))
}

/// The hint in errors about unknown environment variables.
const VARIABLES: &str =
    "a variable whose name begins with KEYWRIGHT_ must name a setting, as KEYWRIGHT_SECTION__NAME";

/// The maximum edit distance between a name and a suggestion.
const DISTANCE_MAX: usize = 3;

#[cfg(test)]
mod tests {

    use super::*;
    use crate::config::Config;

    #[test]
    fn every_setting_is_named_and_described() {
        let schema = Config::schema();
        let names = names(&schema);
        for name in [
            "server.tls.certificate",
            "encryption.keys[].file",
            "generators.NAME.limits.deadline_ms",
            "authentication.static_key.issuer",
            "authentication.claims.grant_type.when_absent",
        ] {
            assert!(
                names.iter().any(|known| known == name),
                "{name}: {names:#?}"
            );
        }
        assert_described(&schema, "");
        let text = schema.to_string();
        for keyword in ["\"$ref\"", "\"null\"", "\"anyOf\"", "\"oneOf\""] {
            assert!(!text.contains(keyword), "{keyword} in {schema:#}");
        }
    }

    fn assert_described(schema: &Value, section: &str) {
        for (field, schema) in fields(schema) {
            let name = joined(section, field);
            let description = schema.get("description").and_then(Value::as_str);
            assert!(description.is_some_and(|text| !text.is_empty()), "{name}");
            assert_described(schema, &name);
            for each in ["items", "additionalProperties"] {
                schema
                    .get(each)
                    .into_iter()
                    .for_each(|each| assert_described(each, &name));
            }
        }
    }
}
