//! Generators whose values come of the random generator that the runtime of their language brings along, which gives the same
//! in each instance: no value of them ever shows it, and they are refused.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test ends when what it needs is not there"
)]

use keywright_harness::{Options, Server, component_by_toolchain, run_program, workspace};
use serde_json::Value;

/// What a refused one is told.
const REASON: &str = "so it does not come of the host's randomness";

#[test]
fn what_quickjs_makes_up_is_found_to_be_constant() {
    is_found_to_be_constant("quickjs");
}

#[test]
fn what_starling_monkey_makes_up_is_found_to_be_constant() {
    is_found_to_be_constant("starling-monkey");
}

#[test]
fn a_server_does_not_start_with_what_quickjs_makes_up() {
    let Some(component) = component_by_toolchain("quickjs") else {
        return;
    };
    let section = format!(
        "component = \"{}\"\ngrants = [\"random\"]",
        component.display()
    );
    let refusal = Server::refusal(&Options::default().generator("quickjs", &section));
    for told in ["the plugin quickjs", REASON] {
        assert!(refusal.contains(told), "{refusal}");
    }
}

/// By its randomness alone: in all else it keeps to what a server expects.
fn is_found_to_be_constant(name: &str) {
    let Some(component) = component_by_toolchain(name) else {
        return;
    };
    let file = component.to_str().unwrap();
    let arguments = ["plugin", "test", file, "--output", "json"];
    let run = run_program(&workspace(), &arguments, &[]).expect(3);
    let tested: Value = serde_json::from_str(&run.output).unwrap();
    assert_eq!(tested["entropy"]["faults"][0]["rule"], "constant");
    // No release is built with it.
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
