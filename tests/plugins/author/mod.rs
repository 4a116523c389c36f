//! `keywright plugin …`, without a server.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends when what it needs is not there"
)]

mod bench;
mod build;
mod inspect;
mod new;
mod notes;
mod run;
mod test;

use std::fs;

use keywright_harness::{Commanded, component, run_program};
use serde_json::Value;
use tempfile::TempDir;

/// A folder with components.
struct Workshop(TempDir);

impl Workshop {
    fn with(components: &[&str]) -> Self {
        let folder = TempDir::new().unwrap();
        for name in components {
            let file = folder.path().join(format!("{name}.wasm"));
            fs::copy(component(name), file).unwrap();
        }
        Self(folder)
    }

    fn write(&self, file: &str, contents: impl AsRef<[u8]>) {
        fs::write(self.0.path().join(file), contents).unwrap();
    }

    /// Runs `keywright plugin` in the folder.
    fn plugin(&self, arguments: &[&str]) -> Commanded {
        run_program(self.0.path(), &[&["plugin"], arguments].concat(), &[])
    }

    /// Returns the JSON output of a command that must exit with this status.
    #[track_caller]
    fn json(&self, arguments: &[&str], status: i32) -> Value {
        let arguments = [arguments, &["--output", "json"]].concat();
        let run = self.plugin(&arguments).expect(status);
        serde_json::from_str(&run.output).unwrap()
    }
}

/// Runs the commands below `Examples:` in the help texts.
#[test]
fn examples_in_help_work() {
    let workshop = Workshop::with(&["wireguard"]);
    for verb in ["bench", "inspect", "run", "test"] {
        let help = workshop.plugin(&[verb, "--help"]).expect(0).output;
        let (_, examples) = help.split_once("Examples:\n").unwrap();
        let lines = examples.lines().map(str::trim);
        let lines: Vec<&str> = lines
            .filter(|line| line.starts_with("keywright "))
            .collect();
        assert!(!lines.is_empty(), "{help}");
        for line in lines {
            let run = workshop.plugin(&words(line)[2..]).expect(0);
            assert!(!run.output.is_empty(), "{line}");
        }
    }
}

#[test]
fn usage_errors_name_the_argument() {
    let workshop = Workshop::with(&["wireguard"]);
    for (arguments, expected) in [
        (
            &["run", "wireguard.wasm", "--parameters", "[1]"],
            "must be a JSON object",
        ),
        (
            &["run", "wireguard.wasm", "--parameters", "{"],
            "the JSON ends too early",
        ),
        (
            &["bench", "wireguard.wasm", "--limits", r#"{"fuel": 1}"#],
            "unknown field",
        ),
        (&["bench", "wireguard.wasm", "--calls", "0"], "--calls"),
    ] {
        let run = workshop.plugin(arguments).expect(2);
        assert!(run.errors.contains(expected), "{run:#?}");
    }
}

#[test]
fn file_that_is_not_a_component_is_reported() {
    let workshop = Workshop::with(&[]);
    workshop.write("module.wasm", b"\0asm\x01\0\0\0");
    for verb in ["bench", "inspect", "run", "test"] {
        let absent = workshop.plugin(&[verb, "absent.wasm"]).expect(1);
        assert!(
            absent.errors.contains("the file does not exist"),
            "{absent:#?}"
        );
        let module = workshop.plugin(&[verb, "module.wasm"]).expect(1);
        assert!(
            module.errors.contains("convert it to a component"),
            "{module:#?}"
        );
    }
}

#[test]
fn limit_out_of_range_is_reported() {
    let workshop = Workshop::with(&["wireguard"]);
    let limits = r#"{"deadline_ms": 1}"#;
    let run = workshop
        .plugin(&["run", "wireguard.wasm", "--limits", limits])
        .expect(1);
    assert!(
        run.errors.contains("deadline_ms must be from 10"),
        "{run:#?}"
    );
}

/// Splits a shell command line that uses only single quotes.
fn words(line: &str) -> Vec<&str> {
    let mut words = Vec::new();
    for (number, piece) in line.split('\'').enumerate() {
        if number % 2 == 1 {
            words.push(piece);
        } else {
            words.extend(piece.split_whitespace());
        }
    }
    words
}
