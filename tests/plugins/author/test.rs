//! `keywright plugin test`.

use serde_json::{Value, json};

use super::Workshop;

/// Returns the failed checks with their reasons.
fn faults(tested: &Value) -> Vec<(&str, &str)> {
    let checks = tested["checks"].as_array().unwrap().iter();
    let failed = checks.filter(|check| !check["fault"].is_null());
    failed
        .map(|check| {
            (
                check["claim"].as_str().unwrap(),
                check["fault"].as_str().unwrap(),
            )
        })
        .collect()
}

#[test]
fn good_plugin_passes_and_its_resource_use_is_shown() {
    let workshop = Workshop::with(&["password"]);
    let tested = workshop.json(&["test", "password.wasm"], 0);
    assert_eq!(faults(&tested), []);
    assert_eq!(tested["entropy"]["values"], 2_000);
    assert_eq!(tested["entropy"]["declared_bits"], 160);
    for limit in tested["limits"].as_array().unwrap() {
        let [used, max] = ["used", "max"].map(|member| limit[member].as_u64().unwrap());
        assert!((1..=max).contains(&used), "{limit}");
    }
    let table = workshop.plugin(&["test", "password.wasm"]).expect(0).output;
    for shown in [
        "its values are random, with at least 160 bits",
        "memory_bytes_max",
    ] {
        assert!(table.contains(shown), "{table}");
    }
}

#[test]
fn every_kind_of_weak_randomness_is_detected() {
    let workshop = Workshop::with(&["careless"]);
    for (breaks, rule) in [
        ("constant", "constant"),
        ("too-few-drawn", "too-few-drawn"),
        ("unused", "unused"),
        ("repeated", "repeated"),
        ("biased", "biased"),
    ] {
        let settings = json!({"breaks": breaks}).to_string();
        let tested = workshop.json(&["test", "careless.wasm", "--settings", &settings], 3);
        let broken = tested["entropy"]["faults"].as_array().unwrap();
        let broken: Vec<&Value> = broken.iter().map(|fault| &fault["rule"]).collect();
        assert_eq!(broken, [rule]);
        assert_eq!(faults(&tested).len(), 1, "{tested:#}");
    }
    let settings = r#"{"breaks": "biased"}"#;
    let table = workshop
        .plugin(&["test", "careless.wasm", "--settings", settings])
        .expect(3);
    let failed = "FAILED  its values are random, with at least 128 bits: ";
    assert!(table.output.contains(failed), "{table:#?}");
}

#[test]
fn other_faults_are_detected() {
    let workshop = Workshop::with(&["hostile"]);
    // The plugin accepts every parameter.
    let unknown = "a parameter that it does not know is refused";
    for (settings, claim, reason) in [
        (json!({}), unknown, "it accepted"),
        (
            json!({"generate": "wrong-shape"}),
            "its values match its schema",
            "does not have the declared form",
        ),
        (
            json!({"normalize": "trap"}),
            "its canonical parameters are their own canonical form",
            "trapped",
        ),
    ] {
        let settings = settings.to_string();
        let tested = workshop.json(&["test", "hostile.wasm", "--settings", &settings], 3);
        let found = faults(&tested);
        assert!(
            found
                .iter()
                .any(|(what, why)| *what == claim && why.contains(reason)),
            "{claim}: {found:#?}"
        );
    }
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
    assert!(
        tested.to_string().contains("expectation 2 is met"),
        "{tested:#}"
    );

    for (expectation, reason) in [
        (
            json!({"random": alice, "value": {}}),
            "it generated another value",
        ),
        (
            json!({"random": "00ff", "value": {}}),
            "it drew more than the 2",
        ),
        (json!({"parameters": {"length": 3}, "value": {}}), "length"),
        (
            json!({"random": alice, "refused": "length"}),
            "it generated a value",
        ),
        (
            json!({"parameters": {"length": 3}, "refused": "size"}),
            "is not known",
        ),
    ] {
        workshop.write("other.json", json!([expectation]).to_string());
        let arguments = ["test", "wireguard.wasm", "--vectors", "other.json"];
        let tested = workshop.json(&arguments, 3);
        let found = faults(&tested);
        assert!(
            matches!(found[..], [("expectation 1 is met", why)] if why.contains(reason)),
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
    assert!(with.to_string().contains("expectation 1 is met"));
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
    let run = workshop.plugin(&["test", "wireguard.wasm"]).expect(1);
    for reported in [
        "wireguard.vectors.json",
        "not a JSON array of objects",
        "expected",
    ] {
        assert!(run.errors.contains(reported), "{run:#?}");
    }
    let absent = workshop
        .plugin(&["test", "wireguard.wasm", "--vectors", "absent.json"])
        .expect(1);
    assert!(absent.errors.contains("absent.json"), "{absent:#?}");
}
