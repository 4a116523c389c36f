//! The configuration as a JSON Schema derived from the structs, for the reference and for checks.

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::Config;

/// The JSON Schema of the whole configuration, without `$ref` and without null, which TOML does not have.
/// `enumDescriptions` describes the values of an enumeration, in the order of `enum`.
pub(crate) fn schema() -> Value {
    let settings =
        SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let schema = settings.into_generator().into_root_schema_for::<Config>();
    let mut schema = schema.to_value();
    simplify(&mut schema);
    schema
}

/// Returns the full names of all settings and sections. `NAME` is a name chosen by the operator, and `[]` an item of a
/// list.
pub(crate) fn names(schema: &Value) -> Vec<String> {
    let mut names = Vec::new();
    add_names(schema, "", &mut names);
    names
}

/// Returns the settings of a section, with their names within it.
pub(crate) fn members(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
}

/// Joins the names of a section and a setting.
pub(crate) fn joined(section: &str, member: &str) -> String {
    if section.is_empty() {
        member.to_owned()
    } else {
        format!("{section}.{member}")
    }
}

/// The content of a setting.
pub(crate) enum Holds<'a> {
    /// A value.
    Value,
    /// A section.
    Section,
    /// Sections with names chosen by the operator.
    NamedSections(&'a Value),
    /// A list of sections.
    ListOfSections(&'a Value),
}

impl<'a> Holds<'a> {
    /// Returns the content of a setting with this schema.
    pub(crate) fn of(schema: &'a Value) -> Self {
        if schema.get("properties").is_some() {
            return Self::Section;
        }
        let has_members = |part: &&Value| part.get("properties").is_some();
        if let Some(named) = schema.get("additionalProperties").filter(has_members) {
            return Self::NamedSections(named);
        }
        match schema.get("items").filter(has_members) {
            Some(item) => Self::ListOfSections(item),
            None => Self::Value,
        }
    }
}

fn add_names(schema: &Value, section: &str, names: &mut Vec<String>) {
    for (member, schema) in members(schema) {
        let name = joined(section, member);
        match Holds::of(schema) {
            Holds::Value => {}
            Holds::Section => add_names(schema, &name, names),
            Holds::NamedSections(each) => add_names(each, &joined(&name, CHOSEN_NAME), names),
            Holds::ListOfSections(each) => add_names(each, &format!("{name}[]"), names),
        }
        names.push(name);
    }
}

/// The placeholder, in full names, for a name chosen by the operator.
pub(crate) const CHOSEN_NAME: &str = "NAME";

fn simplify(schema: &mut Value) {
    let Value::Object(schema) = schema else {
        return;
    };
    remove_null(schema);
    gather_enumeration(schema);
    for part in ["items", "additionalProperties"] {
        schema.get_mut(part).into_iter().for_each(simplify);
    }
    if let Some(Value::Object(members)) = schema.get_mut("properties") {
        members.values_mut().for_each(simplify);
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

/// Merges `oneOf` alternatives of one constant each, which is how enumerations with described values are generated.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_is_named_and_described() {
        let schema = schema();
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
        for (member, schema) in members(schema) {
            let name = joined(section, member);
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
