//! Generators that use the random number generator of their language's runtime, which returns the same numbers in every instance.
//! They are rejected before any value is used.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test ends when what it needs is not there"
)]

use keywright_harness::{Options, Server, component_by_toolchain, run_program, workspace};
use serde_json::Value;

/// The error for a rejected generator.
const REASON: &str = "although each call got different random bytes";

#[test]
fn quickjs_randomness_is_detected_as_constant() {
    is_found_to_be_constant("quickjs");
}

#[test]
fn starling_monkey_randomness_is_detected_as_constant() {
    is_found_to_be_constant("starling-monkey");
}

#[test]
fn server_does_not_start_with_constant_randomness() {
    let Some(component) = component_by_toolchain("quickjs") else {
        return;
    };
    let section = format!(
        "component = \"{}\"\ngrants = [\"random\"]",
        component.display()
    );
    let refusal = Server::refusal(&Options::default().generator("quickjs", &section));
    for expected in ["the plugin quickjs", REASON] {
        assert!(refusal.contains(expected), "{refusal}");
    }
}

/// Asserts that only the randomness test fails.
fn is_found_to_be_constant(name: &str) {
    let Some(component) = component_by_toolchain(name) else {
        return;
    };
    let file = component.to_str().unwrap();
    let arguments = ["plugin", "test", file, "--output", "json"];
    let run = run_program(&workspace(), &arguments, &[]).expect(3);
    let tested: Value = serde_json::from_str(&run.output).unwrap();
    assert_eq!(tested["entropy"]["faults"][0]["rule"], "constant");
    // Not in the list of tested components of a release.
    let refused = run_program(&workspace(), &["plugin", "tested", file], &[]).expect(1);
    assert!(refused.errors.contains(REASON), "{refused:?}");
    let checks = tested["checks"].as_array().unwrap();
    let faults: Vec<&str> = checks
        .iter()
        .filter_map(|check| check["fault"].as_str())
        .collect();
    assert!(
        matches!(faults[..], [fault] if fault.contains(REASON)),
        "{faults:#?}"
    );
}
