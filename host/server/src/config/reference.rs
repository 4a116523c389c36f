//! Generates the configuration reference, in Markdown, from the doc comments of the settings.

use std::fmt::Write;

use serde_json::Value;

use super::{
    schema::{CHOSEN_NAME, Content, fields},
    source::{joined, variable},
};

/// Returns the configuration reference for the schema of the configuration.
pub(crate) fn reference(schema: &Value) -> String {
    let mut text = INTRODUCTION.to_owned();
    add_section(&mut text, schema, "", &mut Vec::new());
    text
}

/// Adds the settings of a section, then its subsections. Refers to an earlier section with the same settings, if any.
fn add_section<'a>(
    text: &mut String,
    section: &'a Value,
    name: &str,
    earlier: &mut Vec<(String, &'a Value)>,
) {
    let is_same = |other: &Value| {
        ["properties", "required"].map(|part| other.get(part))
            == ["properties", "required"].map(|part| section.get(part))
    };
    if let Some((same, _)) = earlier.iter().find(|(_, other)| is_same(other)) {
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "\nThe settings and subsections are those of `[{same}]`."
        );
        return;
    }
    earlier.push((name.to_owned(), section));
    let is_value = |schema: &Value| matches!(Content::of(schema), Content::Value);
    let required = section.get("required").and_then(Value::as_array);
    let mut settings = fields(section).filter(|(_, schema)| is_value(schema));
    if let Some(first) = settings.next() {
        text.push_str(TABLE_HEAD);
        for (setting, schema) in std::iter::once(first).chain(settings) {
            let is_required =
                required.is_some_and(|names| names.iter().any(|name| name == setting));
            add_setting(text, schema, setting, is_required);
        }
    }
    for (field, schema) in fields(section) {
        let name = joined(name, field);
        match Content::of(schema) {
            Content::Value => {}
            Content::Section => {
                add_heading(text, &format!("[{name}]"), schema);
                add_section(text, schema, &name, earlier);
            }
            Content::NamedSections(each) => {
                let name = joined(&name, CHOSEN_NAME);
                add_heading(text, &format!("[{name}]"), schema);
                add_section(text, each, &name, earlier);
            }
            Content::ListOfSections(each) => {
                add_heading(text, &format!("[[{name}]]"), schema);
                let variable = variable(&name);
                let _ = writeln!(
                    text,
                    "\nEnvironment variable for the whole list: `{variable}`"
                );
                add_section(text, each, &format!("{name}[]"), earlier);
            }
        }
    }
}

const TABLE_HEAD: &str = "\n| Setting | Value | Default | Meaning |\n|---|---|---|---|\n";

fn add_heading(text: &mut String, heading: &str, schema: &Value) {
    let _ = writeln!(text, "\n## `{heading}`\n\n{}", description(schema));
}

fn add_setting(text: &mut String, schema: &Value, name: &str, is_required: bool) {
    let default = match schema.get("default") {
        Some(default) => format!("`{default}`"),
        None if is_required => "required".to_owned(),
        None => "not set".to_owned(),
    };
    let mut meaning = description(schema);
    let listed = |keyword| {
        let of_items = || schema.get("items")?.get(keyword);
        schema
            .get(keyword)
            .or_else(of_items)
            .and_then(Value::as_array)
    };
    let (values, meanings) = (listed("enum"), listed("enumDescriptions"));
    if let (Some(values), Some(meanings)) = (values, meanings) {
        for (value, text) in values.iter().zip(meanings) {
            let _ = write!(meaning, " `{value}`: {}", on_one_line(text));
        }
    }
    let cells = [kind(schema, name), default, meaning].map(|cell| cell.replace('|', "\\|"));
    let _ = writeln!(text, "| `{name}` | {} |", cells.join(" | "));
}

/// Returns the type of a setting, with its unit and bounds.
fn kind(schema: &Value, name: &str) -> String {
    if schema.get("enum").is_some() {
        return ONE_OF_VALUES.to_owned();
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("array") => match schema.get("items").map(|item| kind(item, name)) {
            Some(item) if item == ONE_OF_VALUES => "list of these values".to_owned(),
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

const ONE_OF_VALUES: &str = "one of these values";

/// Returns the unit of a number, which is part of its name.
fn unit(name: &str) -> &'static str {
    let field = name.rsplit('.').next().unwrap_or(name);
    let words = || field.split('_');
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

fn description(schema: &Value) -> String {
    let text = schema.get("description").and_then(Value::as_str);
    text.unwrap_or_default()
        .replace("\n\n", " ")
        .replace('\n', " ")
}

fn on_one_line(text: &Value) -> String {
    text.as_str().unwrap_or_default().replace('\n', " ")
}

const INTRODUCTION: &str = "\
# Configuration reference

For administrators who look up a setting. `cargo xtask golden` generates this page from the code, and `keywright config-reference` prints the
reference of the installed version.

`keywright serve --config FILE` reads one TOML file. `keywright check-config FILE` checks one without starting the server.

- Relative paths are relative to the file's folder.
- Each setting that is not in a list has an environment variable, which overrides it: `KEYWRIGHT_SERVER__TLS__CERTIFICATE` overrides
  `certificate` in the section `server.tls`. Its value is a TOML value, but strings need no quotes.
- `NAME` in a section and in its variables represents a name of your choice. Shells and systemd do not support variables whose names
  contain hyphens: configure such names in the file.
- Except in the `settings` of plugins, the file contains no secrets: settings name the file or environment variable that contains a secret.
- Unknown settings are rejected, and so are environment variables that start with `KEYWRIGHT_` and match no setting.
  `KEYWRIGHT_LOG` overrides `log.filter` unless it is empty. The server ignores `KEYWRIGHT_CLIENT_…` and `KEYWRIGHT_TOKEN`, which configure
  the client.
";

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;
    use crate::config::Config;

    #[test]
    fn the_golden_reference_matches_the_code() {
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/configuration.md");
        if std::env::var_os("KEYWRIGHT_REFRESH_GOLDEN_FILES").is_some() {
            fs::write(&golden, reference(&Config::schema())).unwrap();
        }
        let golden_text = fs::read_to_string(&golden).unwrap_or_default();
        assert!(
            golden_text == reference(&Config::schema()),
            "host/docs/configuration.md does not match the code; run `cargo xtask golden` and review the difference"
        );
    }

    #[test]
    fn the_reference_contains_no_code() {
        let text = reference(&Config::schema());
        for part in ["crate::", "](", "[`", "Self::", "`Debug`"] {
            assert!(!text.contains(part), "{part} is in\n{text}");
        }
    }
}
