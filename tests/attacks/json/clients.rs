//! JSON read by the command line: responses, documents and exports.

use std::{
    fs,
    sync::{Arc, Mutex},
};

use keywright_harness::{Commanded, Reply, Shell, Stub};

use super::corpus::{Input, inputs, nested};

/// The inputs. Each needs a process, so there is one of each kind.
fn chosen() -> Vec<Input> {
    let mut inputs = inputs();
    inputs.reverse();
    let mut seen = std::collections::HashSet::new();
    inputs.retain(|input| seen.insert(format!("{:?}", input.fault)) || input.text.len() > 300_000);
    inputs
}

/// Requires that the program exited by itself.
#[track_caller]
fn assert_ended(run: &Commanded, attack: &str) {
    assert!(
        run.status.is_some(),
        "{attack} ended the program: {}",
        run.errors
    );
    assert!(!run.errors.contains("panicked"), "{attack}: {}", run.errors);
}

#[test]
fn no_response_ends_the_client() {
    let response: Arc<Mutex<Vec<u8>>> = Arc::default();
    let sent = Arc::clone(&response);
    let stub = Stub::start(move |_, _, _| Reply::bytes(&sent.lock().unwrap()));
    let shell = stub.shell();
    for input in chosen() {
        let version = r#"{"data":[{"id":"i","name":"/a","type":"json","version_created_at":"t","metadata":null,"value":@}]}"#;
        for (arguments, body) in [
            (&["get", "/a"][..], "@"),
            (&["get", "/a", "--output", "yaml"], version),
            (
                &["types", "json"],
                r#"{"types":[{"name":"json","summary":"s","plugin":null,"parameters":@,"value":{}}]}"#,
            ),
        ] {
            *response.lock().unwrap() = super::filled(body, &input.text);
            assert_ended(
                &shell.run(arguments),
                &format!("{arguments:?} with {}", input.what),
            );
        }
    }
}

#[test]
fn no_file_ends_the_client() {
    let shell = Stub::start(|_, _, _| Reply::new(200, "{}")).shell();
    let entry = r#"{"credentials":[{"name":"/a","type":"json","value":{"a":@}}]}"#;
    for input in chosen() {
        for (file, body) in [
            ("a.json", "@"),
            ("b.json", entry),
            ("c.yml", entry),
            ("d.yml", "@"),
        ] {
            fs::write(shell.file(file), super::filled(body, &input.text)).unwrap();
            let run = shell.run(&["import", file, "--dry-run"]);
            assert_ended(&run, &format!("import of {file} with {}", input.what));
            let run = shell.run(&["interpolate", file]);
            assert_ended(&run, &format!("interpolate of {file} with {}", input.what));
        }
    }
}

#[test]
fn no_yaml_crashes_or_hangs_the_client() {
    let shell = Shell::new();
    let block: Vec<String> = (0..2_000)
        .map(|level| format!("{}a:\n", " ".repeat(level)))
        .collect();
    let bomb: Vec<String> = (1..40)
        .map(|level| format!("a{level}: &a{level} [*a{0}, *a{0}]\n", level - 1))
        .collect();
    let (block, bomb) = (block.concat(), bomb.concat());
    for (what, text) in [
        ("flow sequences", nested("[", "]", 100_000)),
        ("flow mappings", nested("{a: ", "}", 100_000)),
        ("block sequences", "- ".repeat(100_000)),
        ("block mappings", block),
        (
            "aliases of aliases",
            format!("a0: &a0 [x]\n{bomb}credentials: []\n"),
        ),
        ("an alias of itself", "credentials: &a [*a]\n".to_owned()),
        (
            "merges",
            format!(
                "a: &a {{b: 1}}\ncredentials:\n- {{<<: [{}]}}\n",
                "*a, ".repeat(50_000)
            ),
        ),
    ] {
        fs::write(shell.file("a.yml"), text).unwrap();
        assert_ended(&shell.run(&["import", "a.yml", "--dry-run"]), what);
    }
}
