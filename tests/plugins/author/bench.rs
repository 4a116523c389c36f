//! `keywright plugin bench`.

use super::Workshop;

#[test]
fn call_takes_longer_than_instantiation() {
    let workshop = Workshop::with(&["wireguard"]);
    let measured = workshop.json(&["bench", "wireguard.wasm", "--calls", "50"], 0);
    assert_eq!(measured["calls"], 50);
    let micros = |what: &str, quantile: &str| measured[what][quantile].as_f64().unwrap();
    for what in ["instantiation", "overhead", "call"] {
        assert!(micros(what, "p50_us") > 0.0);
        assert!(micros(what, "p50_us") <= micros(what, "p99_us"));
    }
    let table = workshop
        .plugin(&["bench", "wireguard.wasm"])
        .expect(0)
        .output;
    assert!(table.contains("the overhead of a call"), "{table}");
}

#[test]
fn plugin_with_required_parameters_uses_its_example() {
    let workshop = Workshop::with(&["certificate"]);
    let arguments = ["bench", "certificate.wasm", "--calls", "1"];
    workshop.plugin(&arguments).expect(0);
}

#[test]
fn failing_call_ends_the_measurement() {
    let workshop = Workshop::with(&["hostile"]);
    let settings = r#"{"generate": "trap"}"#;
    let run = workshop
        .plugin(&["bench", "hostile.wasm", "--settings", settings])
        .expect(1);
    assert!(run.errors.contains("trapped"), "{run:#?}");
    assert_eq!(run.output, "");
}
