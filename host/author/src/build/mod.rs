//! Builds projects into components.

mod compiled;
mod interpreted;
mod project;

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
};

use crate::{
    component::{World, component_of_go_module, component_of_module, stub_wasi_imports},
    error::ProjectError,
    language::Language,
    programs::{Programs, printable},
};
use compiled::{c_module, go_module, rust_module};
use interpreted::{javascript_component, python_component, with_randomness};
use project::{Project, absolute, check_replaceable, read, replace};

/// Builds the project in a folder and returns the path of the component: `output`, or a file in the folder with the folder's name.
///
/// Prints the command line and the output of each program that it runs to standard error.
pub fn build(
    folder: &Path,
    output: Option<&Path>,
    programs: &Programs,
) -> Result<PathBuf, ProjectError> {
    let language = Language::of_project(folder)?;
    let output = match output {
        Some(output) => output.to_owned(),
        None => folder
            .join(folder_name(folder)?)
            .with_added_extension("wasm"),
    };
    check_replaceable(&output).map_err(|cause| ProjectError::file("write", &output, cause))?;
    let project = Project { folder, programs };
    note_formats(&project, language)?;
    let built = match language {
        Language::C => c_module(&project),
        Language::Go => go_module(&project),
        Language::JavaScript => javascript_component(&project),
        Language::Python => python_component(&project),
        Language::Rust => rust_module(&project),
    }?;
    let bytes = read(&built)?;
    let component = match language {
        Language::C | Language::Rust => component_of_module(&bytes),
        Language::Go => component_of_go_module(bytes, &World::of_project(folder)?),
        Language::JavaScript => stub_wasi_imports(bytes),
        Language::Python => with_randomness(bytes),
    };
    let component = component.map_err(|cause| {
        let failure = format!("could not create a component from {}", built.display());
        ProjectError::caused_by(failure, cause)
    })?;
    replace(&output, &component)?;
    Ok(output)
}

/// Prints a note for each schema in the project's sources that contains a `format`, because a host ignores it.
fn note_formats(project: &Project<'_>, language: Language) -> Result<(), ProjectError> {
    for file in project.sources(language)? {
        let text = read(&file)?;
        for (number, line) in String::from_utf8_lossy(&text).lines().enumerate() {
            if let Some(format) = format_in(line) {
                // Standard error may be closed.
                let _ = writeln!(
                    io::stderr(),
                    "note: {}:{}: the host ignores \"format\": \"{format}\" in a schema; use \"pattern\"",
                    printable(&file.to_string_lossy()),
                    number + 1
                );
            }
        }
    }
    Ok(())
}

/// Returns the format in a line of source, if it has a keyword of a schema such as `"format": "uuid"` or `format: 'uuid'`.
fn format_in(line: &str) -> Option<&'static str> {
    let ignored = |character: char| character.is_whitespace() || r#""'\`"#.contains(character);
    let line = line.replace(ignored, "");
    let mut found = line.match_indices("format:").filter_map(|(at, keyword)| {
        let (before, rest) = (line.get(..at)?, line.get(at + keyword.len()..)?);
        let is_word =
            before.ends_with(|character: char| character.is_alphanumeric() || character == '_');
        let name_ends = |character: char| !character.is_ascii_alphanumeric() && character != '-';
        let name = rest.split(name_ends).next().filter(|_| !is_word)?;
        FORMATS.into_iter().find(|format| *format == name)
    });
    found.next()
}

/// The formats of JSON Schema, draft 2020-12.
const FORMATS: [&str; 19] = [
    "date",
    "date-time",
    "duration",
    "email",
    "hostname",
    "idn-email",
    "idn-hostname",
    "ipv4",
    "ipv6",
    "iri",
    "iri-reference",
    "json-pointer",
    "regex",
    "relative-json-pointer",
    "time",
    "uri",
    "uri-reference",
    "uri-template",
    "uuid",
];

/// Returns the name of a folder, even if the path is `.`.
fn folder_name(folder: &Path) -> Result<PathBuf, ProjectError> {
    let full = absolute(folder)?;
    Ok(full.file_name().unwrap_or("plugin".as_ref()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_found_in_schemas_of_each_language() {
        for (line, format) in [
            (
                r#""id": {"type": "string", "format": "uuid"}"#,
                Some("uuid"),
            ),
            (
                r#""{\"format\": \"date-time\", \"a\": 1}""#,
                Some("date-time"),
            ),
            (
                "id: { type: 'string', format: 'idn-email' },",
                Some("idn-email"),
            ),
            (r#""format": {"enum": ["uuid"]}"#, None),
            (r#""dateformat": "date""#, None),
            (r#"text.format("uuid")"#, None),
            (r#""format": "dates""#, None),
        ] {
            assert_eq!(format_in(line), format, "{line}");
        }
    }
}
