//! Generates the configuration reference, in Markdown, from the doc comments of the settings.

use std::fmt::Write;

use serde_json::Value;

use super::schema::{CHOSEN_NAME, Holds, joined, members, schema};

/// Returns the configuration reference.
pub(crate) fn reference() -> String {
    let mut text = INTRODUCTION.to_owned();
    add_section(&mut text, &schema(), "", Overridable::EachSetting);
    text
}

/// How environment variables override a section.
#[derive(Clone, Copy)]
enum Overridable {
    /// Each setting has a variable.
    EachSetting,
    /// The section is an item of a list, which can only be overridden as a whole.
    ListOnly,
}

/// Adds the settings of a section, then its subsections.
fn add_section(text: &mut String, section: &Value, name: &str, overridable: Overridable) {
    let is_value = |schema: &Value| matches!(Holds::of(schema), Holds::Value);
    let required = section.get("required").and_then(Value::as_array);
    for (member, schema) in members(section).filter(|(_, schema)| is_value(schema)) {
        let is_required = required.is_some_and(|names| names.iter().any(|name| name == member));
        add_setting(
            text,
            schema,
            &joined(name, member),
            is_required,
            overridable,
        );
    }
    for (member, schema) in members(section) {
        let name = joined(name, member);
        match Holds::of(schema) {
            Holds::Value => {}
            Holds::Section => {
                add_heading(text, &format!("[{name}]"), schema);
                add_section(text, schema, &name, overridable);
            }
            Holds::NamedSections(each) => {
                let name = joined(&name, CHOSEN_NAME);
                add_heading(text, &format!("[{name}]"), schema);
                add_section(text, each, &name, overridable);
            }
            Holds::ListOfSections(each) => {
                add_heading(text, &format!("[[{name}]]"), schema);
                let variable = variable(&name);
                // Writing to a string does not fail.
                let _ = writeln!(text, "\nThe whole list in the environment: `{variable}`");
                add_section(text, each, &format!("{name}[]"), Overridable::ListOnly);
            }
        }
    }
}

fn add_heading(text: &mut String, heading: &str, schema: &Value) {
    let _ = writeln!(text, "\n## `{heading}`\n\n{}", description(schema));
}

fn add_setting(
    text: &mut String,
    schema: &Value,
    name: &str,
    is_required: bool,
    overridable: Overridable,
) {
    let _ = write!(text, "\n### `{name}`\n\n{}", kind(schema, name));
    match schema.get("default") {
        Some(default) => {
            let _ = write!(text, " · default `{default}`");
        }
        None if is_required => text.push_str(" · required"),
        None => text.push_str(" · not set by default"),
    }
    if let Overridable::EachSetting = overridable {
        let _ = write!(text, " · `{}`", variable(name));
    }
    let _ = writeln!(text, "\n\n{}", description(schema));
    let listed = |keyword| {
        let of_items = || schema.get("items")?.get(keyword);
        schema
            .get(keyword)
            .or_else(of_items)
            .and_then(Value::as_array)
    };
    let (values, meanings) = (listed("enum"), listed("enumDescriptions"));
    if let (Some(values), Some(meanings)) = (values, meanings) {
        text.push('\n');
        for (value, meaning) in values.iter().zip(meanings) {
            let _ = writeln!(text, "- `{value}`: {}", on_one_line(meaning));
        }
    }
}

/// Returns the type of a setting, with its unit and bounds.
fn kind(schema: &Value, name: &str) -> String {
    if schema.get("enum").is_some() {
        return ONE_OF_VALUES.to_owned();
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("array") => match schema.get("items").map(|item| kind(item, name)) {
            Some(item) if item == ONE_OF_VALUES => "list of the values below".to_owned(),
            Some(item) => format!("list of {item}s"),
            None => "list".to_owned(),
        },
        Some("boolean") => "`true` or `false`".to_owned(),
        Some("integer") => format!("whole number{}{}", unit(name), bounds(schema)),
        Some("object") => "table".to_owned(),
        Some("string") => "string".to_owned(),
        _ => "any value".to_owned(),
    }
}

const ONE_OF_VALUES: &str = "one of the values below";

/// Returns the unit of a number, which is part of its name.
fn unit(name: &str) -> &'static str {
    let member = name.rsplit('.').next().unwrap_or(name);
    let words = || member.split('_');
    UNITS
        .into_iter()
        .find(|(word, _)| words().any(|found| found == *word))
        .map_or("", |(_, unit)| unit)
}

const UNITS: [(&str, &str); 5] = [
    ("bytes", " of bytes"),
    ("days", " of days"),
    ("milliseconds", " of milliseconds"),
    ("ms", " of milliseconds"),
    ("seconds", " of seconds"),
];

fn bounds(schema: &Value) -> String {
    let bound = |keyword| schema.get(keyword).and_then(Value::as_u64);
    match (bound("minimum"), bound("maximum")) {
        (Some(min), Some(max)) => format!(" from {min} to {max}"),
        (Some(min), None) if min > 0 => format!(", at least {min}"),
        (None, Some(max)) => format!(", at most {max}"),
        _ => String::new(),
    }
}

/// Returns the environment variable that overrides a setting.
pub(crate) fn variable(name: &str) -> String {
    format!("KEYWRIGHT_{}", name.replace('.', "__").to_uppercase())
}

fn description(schema: &Value) -> String {
    let text = schema.get("description").and_then(Value::as_str);
    let paragraphs = text.unwrap_or_default().split("\n\n");
    let paragraphs: Vec<_> = paragraphs.map(|text| text.replace('\n', " ")).collect();
    paragraphs.join("\n\n")
}

fn on_one_line(text: &Value) -> String {
    text.as_str().unwrap_or_default().replace('\n', " ")
}

const INTRODUCTION: &str = "\
# Configuration reference

Generated from the code by `cargo xtask golden`. `keywright config-reference` prints the reference of the installed version.

`keywright serve --config FILE` reads one TOML file. `keywright check-config FILE` checks one without starting the server.

- Relative paths are relative to the file's folder.
- Settings with an environment variable next to them can be overridden by it. Its value is a TOML value, but strings need no
  quotes. Replace `NAME` in a setting and its variable with a name of your choice.
- The file contains no secrets: settings name the file or environment variable that contains a secret.
- Unknown settings are rejected, and so are environment variables that start with `KEYWRIGHT_` and match no setting.
  `KEYWRIGHT_LOG` overrides `log.filter`.
";

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;

    #[test]
    fn the_golden_reference_matches_the_code() {
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("CONFIGURATION.md");
        if std::env::var_os("KEYWRIGHT_REFRESH_GOLDEN_FILES").is_some() {
            fs::write(&golden, reference()).unwrap();
        }
        let kept = fs::read_to_string(&golden).unwrap_or_default();
        assert!(
            kept == reference(),
            "host/server/CONFIGURATION.md does not match the code; run `cargo xtask golden` and review the difference"
        );
    }

    #[test]
    fn a_setting_has_its_bounds_default_and_variable() {
        let text = reference();
        for part in [
            "### `server.connections_max`\n\nwhole number from 1 to 1000000 · default `4096` · `KEYWRIGHT_SERVER__CONNECTIONS_MAX`\n\n",
            "### `server.tls.certificate`\n\nstring · required · `KEYWRIGHT_SERVER__TLS__CERTIFICATE`\n\n",
            "whole number of seconds from 1 to 3600 · default `10` · `KEYWRIGHT_SERVER__HANDSHAKE_SECONDS_MAX`",
            "whole number of milliseconds from 10 to 600000 · default `30000` · `KEYWRIGHT_GENERATORS__NAME__LIMITS__DEADLINE_MS`",
            "one of the values below · default `\"json\"` · `KEYWRIGHT_AUDIT__FORMAT`",
            "- `\"cef\"`: The Common Event Format",
            "## `[[encryption.keys]]`",
            "### `encryption.keys[].provider`\n\none of the values below · required\n",
        ] {
            assert!(text.contains(part), "{part}\nis not in\n{text}");
        }
    }

    #[test]
    fn the_reference_contains_no_code() {
        let text = reference();
        for part in ["crate::", "](", "[`", "Self::", "`Debug`"] {
            assert!(!text.contains(part), "{part} is in\n{text}");
        }
    }
}
