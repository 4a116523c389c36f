//! `keywright plugin test`, and the notes of plugins.

use std::fs::File;

use keywright_harness::{Options, Server, Text, release};
use serde_json::{Value, json};

use super::Workshop;

/// Returns the failed checks with their reasons.
pub(super) fn faults(tested: &Value) -> Vec<(&str, &str)> {
    let checks = tested["checks"].as_array().unwrap().iter();
    let failed =
        checks.filter_map(|check| Some((check["claim"].as_str()?, check["fault"].as_str()?)));
    failed.collect()
}

#[test]
fn good_plugin_passes_and_its_resource_use_is_shown() {
    let workshop = Workshop::with(&["password"]);
    let tested = workshop.json(&["test", "password.wasm"], 0);
    assert_eq!(faults(&tested), []);
    assert_eq!(tested["entropy"]["values"], 2_000);
    assert_eq!(tested["entropy"]["declared_bits"], 160);
    for limit in tested["limits"].as_array().unwrap() {
        let [used, max] = ["used", "max"].map(|field| limit[field].as_u64().unwrap());
        assert!((1..=max).contains(&used), "{limit}");
    }
    let table = workshop.plugin(&["test", "password.wasm"]).expect(0).output;
    for shown in [
        "its values are random, with at least 160 bits",
        "memory_bytes_max",
    ] {
        table.assert_contains(shown);
    }
}

#[test]
fn every_kind_of_weak_randomness_is_detected() {
    let workshop = Workshop::with(&["careless"]);
    for (breaks, words) in [
        ("constant", "the field pepper is the same in"),
        ("too-few-drawn", "it drew 40 random bits for a value"),
        (
            "unused",
            "the plugin uses too few of the 256 bits that it draws",
        ),
        ("repeated", "values are equal, which is implausible"),
        ("biased", "positions that never change: 1"),
    ] {
        let settings = json!({"breaks": breaks}).to_string();
        let tested = workshop.json(&["test", "careless.wasm", "--settings", &settings], 3);
        let broken = tested["entropy"]["faults"].as_array().unwrap();
        let broken: Vec<&Value> = broken.iter().map(|fault| &fault["rule"]).collect();
        assert_eq!(broken, [breaks]);
        let faults = faults(&tested);
        assert!(
            matches!(faults[..], [(_, fault)] if fault.contains(words)),
            "{faults:#?}"
        );
    }
    let settings = r#"{"breaks": "biased"}"#;
    let table = ["test", "careless.wasm", "--settings", settings];
    let table = workshop.plugin(&table).expect(3);
    let failed = "FAILED  its values are random, with at least 128 bits: ";
    table.output.assert_contains(failed);
}

#[test]
fn faults_other_than_weak_randomness_are_detected() {
    let workshop = Workshop::with(&["hostile"]);
    // The plugin accepts every parameter.
    let unknown = "it refuses unknown parameters";
    for (settings, claim, reason) in [
        (json!({}), unknown, "it accepted"),
        (
            json!({"generate": "wrong-shape"}),
            "its values match its schema, and their lifetimes are valid",
            "does not have the declared form",
        ),
        (
            json!({"normalize": "trap"}),
            "normalizing canonical parameters returns them unchanged",
            "trapped",
        ),
    ] {
        let settings = settings.to_string();
        let tested = workshop.json(&["test", "hostile.wasm", "--settings", &settings], 3);
        let found = faults(&tested);
        let is_found = |(what, why): &(&str, &str)| *what == claim && why.contains(reason);
        assert!(found.iter().any(is_found), "{claim}: {found:#?}");
    }
}

#[test]
fn random_value_without_a_secret_part_is_a_fault() {
    let workshop = Workshop::with(&[]);
    let open = (r#""writeOnly": true"#, r#""writeOnly":false"#);
    workshop.write("open.wasm", release("password", open));
    let tested = workshop.json(&["test", "open.wasm"], 3);
    let claim = "its value schema marks the secrets in random values";
    let found = faults(&tested);
    assert!(
        matches!(found[..], [(what, why)] if what == claim && why.contains(r#""writeOnly": true"#)),
        "{found:#?}"
    );
}

#[test]
fn test_vectors_are_next_to_the_component_or_elsewhere() {
    let workshop = Workshop::with(&["wireguard"]);
    // RFC 7748, section 6.1: Alice's keys, the private one clamped.
    let alice = "77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a";
    let met = json!([
        {
            "random": alice,
            "value": {
                "private_key": "cAdtCnMYpX08FsFyUbJmRd9ML4frwJkqsXf7pR25LGo=",
                "public_key": "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=",
            },
        },
        {"parameters": {"length": 3}, "refused": "length"},
    ]);
    workshop.write("wireguard.vectors.json", met.to_string());
    let tested = workshop.json(&["test", "wireguard.wasm"], 0);
    assert!(tested.to_string().contains("test vector 2"), "{tested:#}");

    for (expectation, reason) in [
        (json!({"random": alice, "value": {}}), "the result differs"),
        (
            json!({"random": "00ff", "value": {}}),
            "the plugin requested more random bytes than the 2",
        ),
        (json!({"parameters": {"length": 3}, "value": {}}), "length"),
        (
            json!({"random": alice, "refused": "length"}),
            "the result differs",
        ),
        (
            json!({"parameters": {"length": 3}, "refused": "size"}),
            "is unknown",
        ),
    ] {
        workshop.write("other.json", json!([expectation]).to_string());
        let arguments = ["test", "wireguard.wasm", "--vectors", "other.json"];
        let tested = workshop.json(&arguments, 3);
        let found = faults(&tested);
        assert!(
            matches!(found[..], [("test vector 1", why)] if why.contains(reason)),
            "{reason}: {found:#?}"
        );
    }
}

#[test]
fn resource_use_includes_calls_for_test_vectors() {
    let workshop = Workshop::with(&["hostile"]);
    let used = |tested: &Value, limit: &str| {
        let limits = tested["limits"].as_array().unwrap();
        let limit = limits.iter().find(|used| used["limit"] == limit).unwrap();
        limit["used"].as_u64().unwrap()
    };
    let without = workshop.json(&["test", "hostile.wasm"], 3);
    let padding = "x".repeat(10_000);
    let expectation = json!([{"parameters": {"a": padding}, "value": {"secret": "s"}}]);
    workshop.write("hostile.vectors.json", expectation.to_string());
    let with = workshop.json(&["test", "hostile.wasm"], 3);
    assert!(with.to_string().contains("test vector 1"));
    // The parameters are the input and the output of `normalize`.
    for limit in ["input_bytes_max", "output_bytes_max"] {
        assert!(used(&without, limit) < 10_000, "{without:#}");
        assert!((10_001..11_000).contains(&used(&with, limit)), "{with:#}");
    }
}

#[test]
fn malformed_test_vectors_are_reported() {
    let workshop = Workshop::with(&["wireguard"]);
    workshop.write("wireguard.vectors.json", r#"[{"expected": 1}]"#);
    let run = workshop.fails("test wireguard.wasm", 1, "test vector 1 is invalid");
    run.errors.assert_contains("wireguard.vectors.json");
    run.errors.assert_contains("expected");
    workshop.write("wireguard.vectors.json", r#"[{"parameters": 5}]"#);
    let reported = "parameters: must be a JSON object";
    workshop.fails("test wireguard.wasm", 1, reported);
    let line = "test wireguard.wasm --vectors absent.json";
    workshop.fails(line, 1, "absent.json");
    let large = File::create(workshop.path("large.json")).unwrap();
    large.set_len(64 * 1024 * 1024 + 1).unwrap();
    let line = "test wireguard.wasm --vectors large.json";
    workshop.fails(line, 1, "the file is larger than 67108864 bytes");
}

#[test]
fn malformed_value_is_reported_with_pointer_and_keyword() {
    let workshop = Workshop::with(&["hostile"]);
    for (behaviour, reason) in [
        (
            "wrong-shape",
            r#"its output violates "type" of its schema at the JSON Pointer "/secret""#,
        ),
        (
            "unknown-member",
            r#"its output violates "additionalProperties" of its schema at the JSON Pointer """#,
        ),
        (
            "not-json",
            "its output is not valid: invalid JSON (line 1, column ",
        ),
    ] {
        let settings = settings(behaviour);
        for (verb, status) in [("run", 1), ("test", 3)] {
            let run = workshop.plugin(&[verb, "hostile.wasm", "--settings", &settings]);
            let errors = run.expect(status).errors.replace('\\', "");
            errors.assert_contains(reason);
            errors.assert_lacks(NOTED);
        }
    }
}

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
    run.output.assert_lacks("note");
    let lines: Vec<&str> = run.errors.lines().collect();
    // The note has 1,025 bytes, and the 1,024th is inside a character.
    assert_eq!(lines[0], format!("note (generate): x{}", "é".repeat(511)));
    assert_eq!(lines[1], r"note (generate): hunter2\n\u{1b}[31m");
    assert_eq!(lines[31], "note (generate): note 32");
    let dropped = "note (generate): 2 more notes of this call are not shown";
    assert_eq!(&lines[32..], [dropped]);
}

/// In a function without loops, the engine does not check the deadline between calls of the host.
#[test]
fn notes_beyond_the_limit_are_not_decoded() {
    let workshop = Workshop::with(&[]);
    let valid = "(call $note (i32.const 0) (i32.const 0))".repeat(32);
    let text = format!(
        r#"(component
            (import "keywright:generator/notes@0.2.0" (instance $notes (export "note" (func (param "text" string)))))
            (core module $memory (memory (export "memory") 1) (data (i32.const 0) "\ff"))
            (core instance $memory (instantiate $memory))
            (core func $note (canon lower (func $notes "note") (memory (core memory $memory "memory"))))
            (core module $noting
                (import "" "note" (func $note (param i32 i32)))
                (func $start {valid} (call $note (i32.const 0) (i32.const 1)))
                (start $start))
            (core instance (instantiate $noting (with "" (instance (export "note" (func $note))))))
            (instance $empty)
            (export "keywright:generator/descriptor@0.2.0" (instance $empty))
        )"#
    );
    workshop.write("noting.wasm", wat::parse_str(text).unwrap());
    let errors = workshop
        .plugin(&["inspect", "noting.wasm"])
        .expect(3)
        .errors;
    let lines: Vec<&str> = errors.lines().skip(32).collect();
    let dropped = "note (describe): 1 more notes of this call are not shown";
    assert_eq!(lines, [dropped]);
}

#[test]
fn notes_of_a_failing_call_are_printed() {
    let workshop = Workshop::with(&["hostile"]);
    let settings = settings("note-and-trap");
    let run = workshop.plugin(&["run", "hostile.wasm", "--settings", &settings]);
    let errors = run.expect(1).errors;
    assert!(errors.starts_with("note (generate): hunter2\n"), "{errors}");
}

#[test]
fn plugin_test_prints_notes_and_plugin_bench_does_not() {
    let workshop = Workshop::with(&["hostile"]);
    let settings = settings("note");
    let notes = |arguments: &[&str], status| {
        let arguments = [arguments, &["--settings", &settings]].concat();
        let errors = workshop.plugin(&arguments).expect(status).errors;
        errors.matches(NOTED).count()
    };
    // One note per validated value. `plugin test` fails because the plugin accepts unknown parameters.
    assert_eq!(notes(&["test", "hostile.wasm"], 3), 20);
    assert_eq!(notes(&["bench", "hostile.wasm", "--calls", "2"], 0), 0);
}

#[tokio::test]
async fn server_discards_notes() {
    for (behaviour, status) in [("note", 200), ("note-and-trap", 500)] {
        let options = Options::default().without_plugins();
        let options = options.hostile("", &format!("generate = \"{behaviour}\""));
        let server = Server::start_with(&options).await;
        let response = server.generate("/a", "hostile", json!({})).await;
        let response = response.expect(status);
        // The log has the most detailed level.
        for expected in [response.body, server.log(), server.audit_trail()] {
            assert!(!expected.contains(NOTED), "{behaviour}: {expected}");
        }
    }
}
