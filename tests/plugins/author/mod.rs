//! `keywright plugin …`, without a server: usage errors, `inspect`, `run` and `bench`.

mod build;
mod calls;
mod exceptions;
mod kinds;
mod test;
mod upgrade;
mod working;

use std::{fs, path::PathBuf};

use keywright_harness::{Arguments, Commanded, Options, Server, Text, component, run_program};
use serde_json::{Value, json};
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

    /// Returns the path of a file in the folder.
    fn path(&self, file: &str) -> PathBuf {
        self.0.path().join(file)
    }

    /// Replaces the first occurrence of a text in a file.
    fn edit(&self, file: &str, from: &str, to: &str) {
        let text = fs::read_to_string(self.path(file)).unwrap();
        text.assert_contains(from);
        self.write(file, text.replacen(from, to, 1));
    }

    /// Runs a command of `keywright plugin` in the folder.
    fn plugin(&self, arguments: &(impl Arguments + ?Sized)) -> Commanded {
        let arguments = [&["plugin"], &arguments.list()[..]].concat();
        run_program(self.0.path(), &arguments, &[])
    }

    /// Runs a command of `keywright plugin` that must exit with this status and report this text.
    #[track_caller]
    fn fails(&self, line: &str, status: i32, reported: &str) -> Commanded {
        let run = self.plugin(&words(line)).expect(status);
        run.errors.assert_contains(reported);
        run
    }

    /// Returns the JSON output of a command that must exit with this status.
    #[track_caller]
    fn json(&self, arguments: &(impl Arguments + ?Sized), status: i32) -> Value {
        let arguments = [&arguments.list()[..], &["--output", "json"]].concat();
        self.plugin(&arguments).expect(status).json()
    }
}

/// Runs the commands below `Examples:` in the help texts.
#[test]
fn examples_in_help_work() {
    let workshop = Workshop::with(&["interpolation", "wireguard"]);
    let wireguard = fs::read(component("wireguard")).unwrap();
    workshop.write("wireguard-1.0.0.wasm", wireguard);
    for verb in ["bench", "inspect", "run", "test"] {
        let help = workshop.plugin(&[verb, "--help"]).expect(0).output;
        let (_, examples) = help.split_once("Examples:\n").unwrap();
        let lines = examples.lines().map(str::trim);
        let lines = lines.filter(|line| line.starts_with("keywright "));
        let lines: Vec<&str> = lines.collect();
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
    for (arguments, reported) in [
        ("run --parameters [1]", "must be a JSON object"),
        ("run --parameters {", "the JSON ends too early"),
        (r#"bench --limits '{"fuel": 1}'"#, "unknown field"),
        (
            r#"run --limits '{"deadline_ms": 1}'"#,
            "deadline_ms must be from 10",
        ),
        (
            r#"run --limits '{"memory_bytes_max": 4294967297}'"#,
            "memory_bytes_max must be from 65536 to 4294967296",
        ),
        (
            r#"run --limits '{"input_bytes_max": 1023}'"#,
            "input_bytes_max must be from 1024",
        ),
        (
            r#"run --limits '{"output_bytes_max": 16777217}'"#,
            "output_bytes_max must be from 1024 to 16777216",
        ),
        ("bench --calls 0", "--calls"),
    ] {
        workshop.fails(&format!("{arguments} wireguard.wasm"), 2, reported);
    }
}

#[test]
fn file_that_is_not_a_component_is_reported() {
    let workshop = Workshop::with(&[]);
    workshop.write("module.wasm", b"\0asm\x01\0\0\0");
    for verb in ["bench", "inspect", "run", "test"] {
        let absent = "loading absent.wasm: the file does not exist";
        for (file, reported) in [
            ("absent.wasm", absent),
            (".", "loading .: it is a folder; name a component"),
            ("module.wasm", "convert it to a component"),
        ] {
            workshop.fails(&format!("{verb} {file}"), 1, reported);
        }
    }
    let reported = "reading .: it is a folder; name a component";
    workshop.fails("push . oci://localhost:1/x:1", 1, reported);
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

#[test]
fn inspect_prints_the_description_and_imports_of_a_generator() {
    let workshop = Workshop::with(&["wireguard"]);
    let shown = workshop.json(&["inspect", "wireguard.wasm"], 0);
    assert_eq!(shown["grants"], json!(["random"]));
    assert_eq!(shown["imports"], json!(["wasi:random/random@0.2.0"]));
    assert_eq!(shown["interface_version"], "0.2.0");
    assert_eq!(shown["generator"]["credential_type"], "wireguard");
    assert_eq!(shown["generator"]["entropy_bits_min"], 251);
    assert_eq!(shown["generator"]["parameters_schema"]["type"], "object");
    assert_eq!(shown["sha256"].as_str().unwrap().len(), 64);
    let file = fs::metadata(component("wireguard")).unwrap();
    assert_eq!(shown["bytes"], file.len());
}

#[test]
fn invalid_settings_are_refused_and_inspect_prints_their_schema() {
    let workshop = Workshop::with(&["current-generator", "interpolation", "wireguard"]);
    for (file, setting) in [
        ("current-generator.wasm", "size"),
        ("interpolation.wasm", "reference_keys"),
    ] {
        let shown = workshop.json(&["inspect", file], 0);
        let schema = &shown["settings_schema"];
        assert!(schema["properties"][setting].is_object(), "{schema}");
        let settings = json!({setting: "hunter2"}).to_string();
        let refused = workshop.json(&["inspect", file, "--settings", &settings], 3);
        let expected = format!("invalid settings: {setting} must be a");
        let refusal = refused["refusal"].as_str().unwrap();
        assert!(refusal.starts_with(&expected), "{refusal}");
        refusal.assert_lacks("hunter2");
        let table = workshop.plugin(&["inspect", file]).expect(0).output;
        table.assert_contains("\nsettings     {");
    }
    let shown = workshop.json(&["inspect", "wireguard.wasm"], 0);
    assert_eq!(shown["settings_schema"], Value::Null);
    for (verb, status) in [("bench", 1), ("run", 1), ("test", 3)] {
        let settings = r#"{"size": "hunter2"}"#;
        let arguments = [verb, "current-generator.wasm", "--settings", settings];
        let refused = workshop.plugin(&arguments).expect(status);
        let shown = format!("{}{}", refused.output, refused.errors);
        let expected = "invalid settings: size must be a whole number";
        shown.assert_contains(expected);
        shown.assert_lacks("hunter2");
    }
}

#[test]
fn inspect_prints_the_interface_version() {
    for (name, version) in [
        ("current-issued", "0.2.0"),
        ("interpolation", "0.2.0"),
        ("released-0-1-0-generator", "0.1.0"),
        ("released-0-1-0-issued", "0.1.0"),
        ("released-0-1-0-resolver", "0.1.0"),
    ] {
        let workshop = Workshop::with(&[name]);
        let inspect = format!("inspect {name}.wasm");
        let shown = workshop.json(&inspect, 0);
        assert_eq!(shown["interface_version"], version, "{name}");
        let table = workshop.plugin(&inspect).expect(0).output;
        table.assert_contains(&format!("built for    {version}\n"));
    }
}

#[test]
fn inspect_prints_all_versions_of_a_mixed_component() {
    let workshop = Workshop::with(&[]);
    let exporting = |interfaces: [&str; 2]| {
        let exports = interfaces
            .map(|interface| format!(r#"(export "keywright:{interface}" (instance $empty))"#));
        let exports = exports.join(" ");
        wat::parse_str(format!("(component (instance $empty) {exports})")).unwrap()
    };
    for interfaces in [
        ["generator/descriptor@0.1.0", "generator/generator@0.2.0"],
        [
            "interpolation/resolver@0.1.0",
            "interpolation/resolver@0.2.0",
        ],
    ] {
        workshop.write("mixed.wasm", exporting(interfaces));
        let shown = workshop.json("inspect mixed.wasm", 3);
        assert_eq!(shown["interface_version"], "0.1.0, 0.2.0");
        let refusal = shown["refusal"].as_str().unwrap();
        let words = "it mixes interfaces of the versions 0.1.0 and 0.2.0";
        assert!(refusal.starts_with(words), "{refusal}");
    }
}

#[test]
fn inspect_prints_a_resolver() {
    let workshop = Workshop::with(&["interpolation"]);
    let shown = workshop.json(&["inspect", "interpolation.wasm"], 0);
    assert_eq!(shown["is_resolver"], true);
    assert_eq!(shown["generator"], Value::Null);
    let table = workshop.plugin("inspect interpolation.wasm").expect(0);
    table.output.assert_contains("[resolver]");
}

#[tokio::test]
async fn configuration_printed_by_inspect_works_in_a_server() {
    let workshop = Workshop::with(&["hostile", "wireguard"]);
    let mut options = Options::default().without_plugins();
    for name in ["hostile", "wireguard"] {
        let file = workshop.path(&format!("{name}.wasm"));
        let inspected = workshop.plugin(&format!("inspect {}", file.display()));
        let shown = inspected.expect(0).output;
        let (_, section) = shown.split_once("\n\n").unwrap();
        options = options.extra(section);
    }
    let server = Server::start_with(&options).await;
    server.generated("/a", "wireguard", json!({})).await;
}

#[test]
fn inspect_prints_why_a_component_cannot_be_loaded() {
    let workshop = Workshop::with(&[]);
    let text = r#"(component
        (import "wasi:clocks/wall-clock@0.2.0" (instance (export "now" (func))))
        (instance $empty)
        (export "keywright:generator/descriptor@0.2.0" (instance $empty))
        (export "keywright:generator/generator@0.2.0" (instance $empty))
    )"#;
    workshop.write("clock.wasm", wat::parse_str(text).unwrap());
    let shown = workshop.json("inspect clock.wasm", 3);
    let reason = "it imports wasi:clocks/wall-clock@0.2.0, which this server does not provide";
    let refusal = shown["refusal"].as_str().unwrap();
    refusal.assert_contains(reason);
    let table = workshop.plugin(&["inspect", "clock.wasm"]).expect(3).output;
    table.assert_contains(reason);
    table.assert_lacks("[generators");
}

#[test]
fn run_prints_secrets_only_with_reveal() {
    let workshop = Workshop::with(&["password", "wireguard"]);
    let hidden = workshop.json(&["run", "wireguard.wasm"], 0);
    assert_eq!(hidden["value"]["private_key"], "[redacted]");
    assert_eq!(hidden["value"]["public_key"].as_str().unwrap().len(), 44);
    assert_eq!(hidden["parameters"], json!({"preshared_key": false}));
    let shown = workshop.json(&["run", "wireguard.wasm", "--reveal"], 0);
    assert_eq!(shown["value"]["private_key"].as_str().unwrap().len(), 44);

    let hidden = workshop.plugin(&["run", "password.wasm"]).expect(0);
    assert_eq!(hidden.output, "\"[redacted]\"\n");
    let line = r#"run password.wasm --reveal --parameters '{"length": 7}'"#;
    let shown = workshop.plugin(&words(line)).expect(0).output;
    assert_eq!(shown.len(), 7 + "\"\"\n".len());
}

#[test]
fn run_reports_rejected_parameters() {
    let workshop = Workshop::with(&["password"]);
    let line = r#"run password.wasm --parameters '{"length": 1000}'"#;
    let run = workshop.fails(line, 1, "length must be from 4 to 200");
    assert_eq!(run.output, "");
}

#[test]
fn run_reports_guest_failures_like_a_server() {
    let workshop = Workshop::with(&["hostile"]);
    for (behaviour, limits, expected) in [
        ("loop", r#"{"deadline_ms": 50}"#, "exceeded its deadline"),
        (
            "misconfigured",
            "{}",
            "reported that its settings are invalid; the note has its message",
        ),
    ] {
        let settings = json!({"generate": behaviour});
        let line = format!("run hostile.wasm --settings '{settings}' --limits '{limits}'");
        workshop.fails(&line, 1, expected);
    }
}

#[test]
fn bench_reports_the_times_of_calls() {
    let workshop = Workshop::with(&["wireguard"]);
    let measured = workshop.json(&["bench", "wireguard.wasm", "--calls", "50"], 0);
    assert_eq!(measured["calls"], 50);
    let micros = |what: &str, quantile: &str| measured[what][quantile].as_f64().unwrap();
    for what in ["instantiation", "overhead", "call"] {
        assert!(micros(what, "p50_us") > 0.0);
        assert!(micros(what, "p50_us") <= micros(what, "p99_us"));
    }
    let table = workshop.plugin("bench wireguard.wasm").expect(0);
    table.output.assert_contains("overhead of a call");
}

#[test]
fn bench_measures_a_resolver() {
    let workshop = Workshop::with(&["interpolation"]);
    let document = r#"{"a": [{"credentials": {"credhub-ref": "((/b))"}}]}"#;
    for given in [&[][..], &["--document", document]] {
        let arguments = [&["bench", "interpolation.wasm", "--calls", "5"], given].concat();
        let measured = workshop.json(&arguments, 0);
        let microseconds = measured["call"]["p50_us"].as_f64();
        assert!(microseconds > Some(0.0), "{measured}");
        let table = workshop.plugin(&arguments).expect(0).output;
        table.assert_contains("finding references in a new instance");
    }
    let line = "bench interpolation.wasm --document []";
    workshop.fails(line, 1, "finding references: ");
}

#[test]
fn bench_uses_the_example_for_required_parameters() {
    let workshop = Workshop::with(&["certificate"]);
    workshop
        .plugin("bench certificate.wasm --calls 1")
        .expect(0);
}

#[test]
fn bench_stops_at_a_failing_call() {
    let workshop = Workshop::with(&["hostile"]);
    for (behaviour, expected) in [("trap", "trapped"), ("other", "reported an internal error")] {
        let settings = json!({"generate": behaviour});
        let line = format!("bench hostile.wasm --settings '{settings}'");
        let run = workshop.fails(&line, 1, expected);
        run.errors.assert_lacks("the log");
        assert_eq!(run.output, "");
    }
}
