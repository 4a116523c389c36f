//! The differences between the descriptions of two releases of a generator.

use std::collections::BTreeSet;

use keywright_core::text::for_log;
use serde::Serialize;
use serde_json::{Map, Value};
use strum::{Display, IntoStaticStr};

use crate::{config::Grant, load_error::PluginRefusedError, schema::Secrecy};

/// A generator's description.
#[derive(Debug, Serialize)]
pub struct InspectedGenerator {
    /// The credential type that it generates.
    pub credential_type: String,
    /// Its own version.
    pub plugin_version: String,
    /// A one-line summary.
    pub summary: String,
    /// The declared minimum of random bits in the secret parts of a value; `None` if it derives its values.
    pub entropy_bits_min: Option<u32>,
    /// The parameter that names an issuer.
    pub issuer_parameter: Option<String>,
    /// The parameters that name inputs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub input_parameters: Vec<String>,
    /// The JSON Schema of its parameters.
    pub parameters_schema: Value,
    /// The JSON Schema of its values.
    pub value_schema: Value,
}

/// The description of a release.
pub(super) struct Described {
    pub(super) generator: InspectedGenerator,
    /// The JSON Schema of its settings, if it declares one.
    pub(super) settings_schema: Option<Value>,
    /// Why a server refuses its settings, if they violate the schema.
    pub(super) refused_settings: Option<PluginRefusedError>,
    /// The grants that its configuration needs.
    pub(super) grants: Vec<Grant>,
    /// The version of the interfaces that it was built for.
    pub(super) interface_version: String,
}

/// A difference between two descriptions.
#[derive(Debug, Serialize)]
pub struct Difference {
    /// The part of the description.
    pub part: String,
    /// The difference, from the old release to the new one.
    pub change: String,
    /// Its effect.
    pub effect: Effect,
}

/// The effect of an upgrade.
#[derive(Clone, Copy, Debug, Display, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "lowercase")]
pub enum Effect {
    /// A server behaves as with the old release.
    Compatible,
    /// A server behaves differently than with the old release.
    Changes,
    /// Something fails that worked with the old release.
    Breaks,
}

/// Returns the differences from the description of the old release to the new one.
pub(super) fn differences(old: &Described, new: &Described) -> Vec<Difference> {
    let mut differences = Vec::new();
    let mut add = |part: &str, change: String, effect| {
        differences.push(Difference {
            part: part.to_owned(),
            change: for_log(&change),
            effect,
        });
    };
    let (before, after) = (&old.generator, &new.generator);
    let now = |old: &str, new: &str| format!("{old}, now {new}");
    if before.credential_type != after.credential_type {
        let change = now(&before.credential_type, &after.credential_type);
        add("credential type", change, Effect::Breaks);
    }
    if before.plugin_version != after.plugin_version {
        let change = now(&before.plugin_version, &after.plugin_version);
        add("plugin version", change, Effect::Compatible);
    }
    if old.interface_version != new.interface_version {
        let change = now(&old.interface_version, &new.interface_version);
        add("version of wit/", change, Effect::Compatible);
    }
    for grant in &new.grants {
        if !old.grants.contains(grant) {
            let change = format!("\"{grant}\" is required in its configuration");
            add("grants", change, Effect::Changes);
        }
    }
    let (bits, new_bits) = (before.entropy_bits_min, after.entropy_bits_min);
    if bits != new_bits {
        let text =
            |bits: Option<u32>| bits.map_or_else(|| "none".to_owned(), |bits| bits.to_string());
        let (effect, required) = match (bits, new_bits) {
            (Some(_), None) => (Effect::Changes, "; its configuration needs derived = true"),
            _ if new_bits < bits => (Effect::Changes, ""),
            _ => (Effect::Compatible, ""),
        };
        let change = now(&text(bits), &text(new_bits));
        add("random bits", format!("{change}{required}"), effect);
    }
    let issuer = before.issuer_parameter.as_deref();
    let new_issuer = after.issuer_parameter.as_deref();
    if issuer != new_issuer {
        let effect = if issuer.is_some() {
            Effect::Breaks
        } else {
            Effect::Changes
        };
        let change = now(issuer.unwrap_or("none"), new_issuer.unwrap_or("none"));
        add("issuer parameter", change, effect);
    }
    for (change, effect) in input_parameters(before, after) {
        add("input parameters", change, effect);
    }
    let [settings_before, settings_after] =
        [old, new].map(|described| described.settings_schema.as_ref().unwrap_or(&Value::Null));
    for (part, change, effect) in parameters(&before.parameters_schema, &after.parameters_schema)
        .into_iter()
        .chain(fields(&before.value_schema, &after.value_schema))
        .chain(settings(settings_before, settings_after))
    {
        add(&part, change.to_owned(), effect);
    }
    if let Some(refusal) = &new.refused_settings {
        add("settings", refusal.to_string(), Effect::Breaks);
    }
    differences
}

/// Returns the changes of the parameters that name inputs, and their effects.
fn input_parameters(
    before: &InspectedGenerator,
    after: &InspectedGenerator,
) -> Vec<(String, Effect)> {
    let only_in = |one: &InspectedGenerator, other: &InspectedGenerator| {
        let mut names = one.input_parameters.clone();
        names.retain(|name| !other.input_parameters.contains(name));
        names
    };
    let removed = only_in(before, after).into_iter();
    let removed = removed.map(|name| (format!("{name} names no inputs any more"), Effect::Breaks));
    let added = only_in(after, before).into_iter();
    let added = added.map(|name| (format!("{name} names inputs now"), Effect::Changes));
    removed.chain(added).collect()
}

/// A part of a schema, its change, and the effect.
type SchemaChange = (String, &'static str, Effect);

/// Returns the changes of parameters. Test requests determine the effects of most changes.
fn parameters(old: &Value, new: &Value) -> Vec<SchemaChange> {
    inputs("parameter", old, new, Effect::Breaks)
}

/// Returns the changes of parameters or settings. `of_refused` is the effect if the new schema refuses a removed property.
fn inputs(kind: &str, old: &Value, new: &Value, of_refused: Effect) -> Vec<SchemaChange> {
    let is_closed = is_closed(new);
    let changes = properties(old, new).into_iter();
    let changes = changes.map(|(name, change)| {
        let effect = match change {
            Change::Removed if is_closed => of_refused,
            _ => Effect::Compatible,
        };
        (format!("{kind} {name}"), change.into(), effect)
    });
    changes.collect()
}

fn fields(old: &Value, new: &Value) -> Vec<SchemaChange> {
    let secrecy = |schema: &Value| Secrecy::of(schema).unwrap_or(Secrecy::Whole);
    let exposed = "is no longer secret";
    let mut changes = Vec::new();
    if secrecy(old) == Secrecy::Whole && secrecy(new) != Secrecy::Whole {
        changes.push(("value".to_owned(), exposed, Effect::Changes));
    }
    for (name, change) in properties(old, new) {
        let property = |schema: &Value| {
            let property = schema.get("properties").and_then(|all| all.get(&name));
            property.map_or(Secrecy::Open, secrecy)
        };
        let (text, effect) = match change {
            Change::Removed => (change.into(), Effect::Changes),
            Change::Changed if property(new).exposes(&property(old)) => (exposed, Effect::Changes),
            Change::Added | Change::Changed => (change.into(), Effect::Compatible),
        };
        changes.push((format!("field {name}"), text, effect));
    }
    changes
}

/// Returns the changes of settings. A server refuses the new release if its settings violate the new schema.
fn settings(old: &Value, new: &Value) -> Vec<SchemaChange> {
    let mut changes = inputs("setting", old, new, Effect::Changes);
    let [was_required, required] = [old, new].map(required);
    let added = required.difference(&was_required);
    changes.extend(added.map(|name| {
        (
            format!("setting {name}"),
            "is now required",
            Effect::Changes,
        )
    }));
    if is_closed(new) && !is_closed(old) {
        let change = "unknown keys are now refused";
        changes.push(("settings".to_owned(), change, Effect::Changes));
    }
    changes
}

/// Returns whether a schema allows only the properties that it lists.
fn is_closed(schema: &Value) -> bool {
    schema.get("additionalProperties") == Some(&Value::Bool(false))
}

fn required(schema: &Value) -> BTreeSet<&str> {
    let names = schema.get("required").and_then(Value::as_array);
    names
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

/// The change of a property.
#[derive(Clone, Copy, IntoStaticStr, PartialEq, Eq)]
enum Change {
    #[strum(serialize = "is new")]
    Added,
    #[strum(serialize = "has another schema")]
    Changed,
    #[strum(serialize = "was removed")]
    Removed,
}

/// Returns the properties that differ, in alphabetical order.
fn properties(old: &Value, new: &Value) -> Vec<(String, Change)> {
    let none = Map::new();
    let [old, new] = [old, new].map(|schema| {
        let properties = schema.get("properties").and_then(Value::as_object);
        properties.unwrap_or(&none)
    });
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let changes = names.into_iter().filter_map(|name| {
        let change = match (old.get(name), new.get(name)) {
            (None, _) => Change::Added,
            (_, None) => Change::Removed,
            (old, new) if old != new => Change::Changed,
            _ => return None,
        };
        Some((name.clone(), change))
    });
    changes.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn described(change: impl FnOnce(&mut Described)) -> Described {
        let mut described = Described {
            generator: InspectedGenerator {
                credential_type: "token".to_owned(),
                plugin_version: "1".to_owned(),
                summary: String::new(),
                entropy_bits_min: Some(128),
                issuer_parameter: Some("ca".to_owned()),
                input_parameters: vec!["credential".to_owned()],
                parameters_schema: json!({
                    "properties": {"ca": {}, "length": {}},
                    "additionalProperties": false,
                }),
                value_schema: json!({"properties": {"key": {"writeOnly": true}, "name": {}}}),
            },
            settings_schema: Some(json!({
                "properties": {"issuer": {}, "size": {}},
                "required": ["issuer"],
                "additionalProperties": false,
            })),
            refused_settings: None,
            grants: vec![Grant::Random],
            interface_version: "0.1.0".to_owned(),
        };
        change(&mut described);
        described
    }

    #[test]
    fn each_difference_has_its_effect() {
        use Effect::{Breaks, Changes, Compatible};
        let cases: [Case<'_>; 16] = [
            (
                &|new| new.generator.credential_type.push('s'),
                "credential type: token, now tokens",
                Breaks,
            ),
            (
                &|new| new.generator.plugin_version.push('1'),
                "plugin version: 1, now 11",
                Compatible,
            ),
            (
                &|new| new.interface_version = "0.2.0".to_owned(),
                "version of wit/: 0.1.0, now 0.2.0",
                Compatible,
            ),
            (
                &|new| new.grants.push(Grant::Signing),
                "grants: \"signing\" is required in its configuration",
                Changes,
            ),
            (
                &|new| new.generator.entropy_bits_min = None,
                "random bits: 128, now none; its configuration needs derived = true",
                Changes,
            ),
            (
                &|new| new.generator.entropy_bits_min = Some(64),
                "random bits: 128, now 64",
                Changes,
            ),
            (
                &|new| new.generator.entropy_bits_min = Some(256),
                "random bits: 128, now 256",
                Compatible,
            ),
            (
                &|new| new.generator.input_parameters.clear(),
                "input parameters: credential names no inputs any more",
                Breaks,
            ),
            (
                &|new| {
                    let added = "credentials".to_owned();
                    new.generator.input_parameters.push(added);
                },
                "input parameters: credentials names inputs now",
                Changes,
            ),
            (
                &|new| new.generator.issuer_parameter = None,
                "issuer parameter: ca, now none",
                Breaks,
            ),
            (
                &|new| new.generator.parameters_schema["properties"]["style"] = json!({}),
                "parameter style: is new",
                Compatible,
            ),
            (
                &|new| {
                    new.generator.parameters_schema["properties"]["length"] = json!({"minimum": 1});
                },
                "parameter length: has another schema",
                Compatible,
            ),
            (
                &|new| new.generator.parameters_schema["properties"] = json!({"ca": {}}),
                "parameter length: was removed",
                Breaks,
            ),
            (
                &|new| new.generator.value_schema["properties"]["key"] = json!({}),
                "field key: is no longer secret",
                Changes,
            ),
            (
                &|new| {
                    new.generator.value_schema["properties"] = json!({"key": {"writeOnly": true}});
                },
                "field name: was removed",
                Changes,
            ),
            (
                &|new| new.generator.value_schema["properties"]["more"] = json!({}),
                "field more: is new",
                Compatible,
            ),
        ];
        assert_effects(&cases);
    }

    #[test]
    fn each_difference_between_settings_has_its_effect() {
        use Effect::{Breaks, Changes, Compatible};
        assert_effects(&[
            (
                &|new| settings_of(new)["properties"]["more"] = json!({}),
                "setting more: is new",
                Compatible,
            ),
            (
                &|new| settings_of(new)["properties"]["size"] = json!({"minimum": 1}),
                "setting size: has another schema",
                Compatible,
            ),
            (
                &|new| settings_of(new)["properties"] = json!({"issuer": {}}),
                "setting size: was removed",
                Changes,
            ),
            (
                &|new| settings_of(new)["required"] = json!(["issuer", "size"]),
                "setting size: is now required",
                Changes,
            ),
            (
                &|new| {
                    let reason = "size is required".to_owned();
                    new.refused_settings = Some(PluginRefusedError::SettingsRefused(reason));
                },
                "settings: invalid settings: size is required",
                Breaks,
            ),
        ]);
    }

    type Case<'a> = (&'a dyn Fn(&mut Described), &'a str, Effect);

    fn assert_effects(cases: &[Case<'_>]) {
        let old = described(|_| {});
        assert!(differences(&old, &old).is_empty());
        for (change, expected, effect) in cases {
            let found = differences(&old, &described(change));
            let found: Vec<_> = found
                .iter()
                .map(|found| (format!("{}: {}", found.part, found.change), found.effect))
                .collect();
            assert_eq!(found, [((*expected).to_owned(), *effect)]);
        }
    }

    fn settings_of(described: &mut Described) -> &mut Value {
        described.settings_schema.as_mut().unwrap()
    }

    #[test]
    fn a_new_or_removed_settings_schema_is_a_difference() {
        let any = described(|new| new.settings_schema = None);
        let declared = described(|_| {});
        let changes = |old, new| -> Vec<_> {
            let found = differences(old, new).into_iter();
            found
                .map(|found| (format!("{}: {}", found.part, found.change), found.effect))
                .collect()
        };
        let expected = [
            ("setting issuer: is new", Effect::Compatible),
            ("setting size: is new", Effect::Compatible),
            ("setting issuer: is now required", Effect::Changes),
            ("settings: unknown keys are now refused", Effect::Changes),
        ];
        assert_eq!(
            changes(&any, &declared),
            expected.map(|(change, effect)| (change.to_owned(), effect))
        );
        let expected = ["issuer", "size"]
            .map(|name| (format!("setting {name}: was removed"), Effect::Compatible));
        assert_eq!(changes(&declared, &any), expected);
    }

    #[test]
    fn removing_a_parameter_from_an_open_schema_breaks_nothing() {
        let old = described(|_| {});
        let new =
            described(|new| new.generator.parameters_schema = json!({"properties": {"ca": {}}}));
        let found = differences(&old, &new);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].effect, Effect::Compatible);
    }

    #[test]
    fn secret_string_that_becomes_open_is_a_change() {
        let secret = json!({"type": "string", "writeOnly": true});
        let found = fields(&secret, &json!({"type": "string"}));
        assert_eq!(
            found,
            [("value".to_owned(), "is no longer secret", Effect::Changes)]
        );
        let nested = |key| json!({"properties": {"peer": {"properties": {"key": key}}}});
        let found = fields(&nested(json!({"writeOnly": true})), &nested(json!({})));
        let expected = (
            "field peer".to_owned(),
            "is no longer secret",
            Effect::Changes,
        );
        assert_eq!(found, [expected]);
    }
}
