//! Notes of plugins.

use keywright_harness::{Options, Server, component};

use super::Workshop;

/// The text in notes that only the author may see.
const NOTED: &str = "hunter2";

fn settings(behaviour: &str) -> String {
    format!(r#"{{"generate": "{behaviour}"}}"#)
}

#[test]
fn notes_are_printed_within_their_limits() {
    let workshop = Workshop::with(&["hostile"]);
    let settings = settings("note");
    let run = workshop.plugin(&["run", "hostile.wasm", "--settings", &settings]);
    let run = run.expect(0);
    assert!(!run.output.contains("note"), "{run:#?}");
    let lines: Vec<&str> = run.errors.lines().collect();
    // The note has 1,025 bytes, and the 1,024th is inside a character.
    assert_eq!(lines[0], format!("note (generate): x{}", "é".repeat(511)));
    assert_eq!(lines[1], r"note (generate): hunter2\n\u{1b}[31m");
    assert_eq!(lines[31], "note (generate): note 32");
    let dropped = "note (generate): 2 more notes of this call are not shown";
    assert_eq!(&lines[32..], [dropped]);
}

#[test]
fn notes_of_a_failing_call_are_printed() {
    let workshop = Workshop::with(&["hostile"]);
    let settings = settings("note-and-trap");
    let run = workshop.plugin(&["run", "hostile.wasm", "--settings", &settings]);
    let run = run.expect(1);
    assert!(
        run.errors.starts_with("note (generate): hunter2\n"),
        "{run:#?}"
    );
}

#[test]
fn test_prints_notes_and_bench_does_not() {
    let workshop = Workshop::with(&["hostile"]);
    let settings = settings("note");
    let notes = |arguments: &[&str], status| {
        let arguments = [arguments, &["--settings", &settings]].concat();
        let errors = workshop.plugin(&arguments).expect(status).errors;
        errors.matches(NOTED).count()
    };
    // One per value that is validated. The test fails because unknown parameters are not rejected.
    assert_eq!(notes(&["test", "hostile.wasm"], 3), 20);
    assert_eq!(notes(&["bench", "hostile.wasm", "--calls", "2"], 0), 0);
}

#[tokio::test]
async fn server_discards_notes() {
    for (behaviour, status) in [("note", 200), ("note-and-trap", 500)] {
        let section = format!(
            "component = \"{}\"\ngrants = [\"random\", \"signing\"]\nderived = true\n\
             settings = {{ generate = \"{behaviour}\" }}",
            component("hostile").display(),
        );
        let options = Options::default().without_plugins();
        let server = Server::start_with(&options.generator("hostile", &section)).await;
        let answer = server
            .generate("/a", "hostile", serde_json::json!({}))
            .await;
        let answer = answer.expect(status);
        // The log has the most detailed level.
        for expected in [answer.body, server.log(), server.audit_trail()] {
            assert!(!expected.contains(NOTED), "{behaviour}: {expected}");
        }
    }
}
