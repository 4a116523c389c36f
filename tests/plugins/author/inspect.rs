//! `keywright plugin inspect`.

use keywright_harness::{Options, Server};

use super::Workshop;

#[test]
fn generator_is_shown_with_description_and_imports() {
    let workshop = Workshop::with(&["wireguard"]);
    let shown = workshop.json(&["inspect", "wireguard.wasm"], 0);
    assert_eq!(shown["grants"], serde_json::json!(["random"]));
    assert_eq!(
        shown["imports"],
        serde_json::json!(["wasi:random/random@0.2.0"])
    );
    assert_eq!(shown["interface_version"], "0.2.0");
    assert_eq!(shown["generator"]["credential_type"], "wireguard");
    assert_eq!(shown["generator"]["entropy_bits_min"], 251);
    assert_eq!(shown["generator"]["parameters_schema"]["type"], "object");
    assert_eq!(shown["sha256"].as_str().unwrap().len(), 64);
    let bytes = std::fs::metadata(keywright_harness::component("wireguard")).unwrap();
    assert_eq!(shown["bytes"], bytes.len());
}

#[test]
fn interface_version_is_shown() {
    let workshop = Workshop::with(&[
        "current-issued",
        "interpolation",
        "released-0-1-0-generator",
        "released-0-1-0-issued",
        "released-0-1-0-resolver",
    ]);
    for (file, version) in [
        ("current-issued.wasm", "0.2.0"),
        ("interpolation.wasm", "0.2.0"),
        ("released-0-1-0-generator.wasm", "0.1.0"),
        ("released-0-1-0-issued.wasm", "0.1.0"),
        ("released-0-1-0-resolver.wasm", "0.1.0"),
    ] {
        let shown = workshop.json(&["inspect", file], 0);
        assert_eq!(shown["interface_version"], version, "{file}");
        let table = workshop.plugin(&["inspect", file]).expect(0).output;
        assert!(
            table.contains(&format!("built for    {version}\n")),
            "{table}"
        );
    }
}

#[test]
fn component_with_several_versions_shows_all() {
    let workshop = Workshop::with(&[]);
    let exporting = |interfaces: [&str; 2]| {
        let exports = interfaces
            .map(|interface| format!(r#"(export "keywright:{interface}" (instance $empty))"#));
        wat::parse_str(format!(
            "(component (instance $empty) {})",
            exports.join(" ")
        ))
        .unwrap()
    };
    for (file, interfaces) in [
        (
            "a.wasm",
            ["generator/descriptor@0.1.0", "generator/generator@0.2.0"],
        ),
        (
            "b.wasm",
            [
                "interpolation/resolver@0.1.0",
                "interpolation/resolver@0.2.0",
            ],
        ),
    ] {
        workshop.write(file, exporting(interfaces));
        let shown = workshop.json(&["inspect", file], 3);
        assert_eq!(shown["interface_version"], "0.1.0, 0.2.0");
        let refusal = shown["refusal"].as_str().unwrap();
        let words = "it mixes interfaces of the versions 0.1.0 and 0.2.0";
        assert!(refusal.starts_with(words), "{refusal}");
    }
}

#[test]
fn resolver_is_shown() {
    let workshop = Workshop::with(&["interpolation"]);
    let shown = workshop.json(&["inspect", "interpolation.wasm"], 0);
    assert_eq!(shown["is_resolver"], true);
    assert_eq!(shown["generator"], serde_json::Value::Null);
    let table = workshop
        .plugin(&["inspect", "interpolation.wasm"])
        .expect(0);
    assert!(table.output.contains("[resolver]"), "{table:#?}");
}

#[tokio::test]
async fn printed_configuration_works_in_a_server() {
    let workshop = Workshop::with(&["hostile", "wireguard"]);
    let mut options = Options::default().without_plugins();
    for name in ["hostile", "wireguard"] {
        let file = workshop.0.path().join(format!("{name}.wasm"));
        let inspected = workshop.plugin(&["inspect", file.to_str().unwrap()]);
        let shown = inspected.expect(0).output;
        let (_, section) = shown.split_once("\n\n").unwrap();
        options = options.extra(section);
    }
    let server = Server::start_with(&options).await;
    server
        .generate("/a", "wireguard", serde_json::json!({}))
        .await
        .expect(200);
}

#[test]
fn unloadable_component_is_shown_with_the_reason() {
    let workshop = Workshop::with(&[]);
    let text = r#"(component
        (import "wasi:clocks/wall-clock@0.2.0" (instance (export "now" (func))))
        (instance $empty)
        (export "keywright:generator/descriptor@0.2.0" (instance $empty))
        (export "keywright:generator/generator@0.2.0" (instance $empty))
    )"#;
    workshop.write("clock.wasm", wat::parse_str(text).unwrap());
    let shown = workshop.json(&["inspect", "clock.wasm"], 3);
    let reason = "it imports wasi:clocks/wall-clock@0.2.0, which this server does not provide";
    let refusal = shown["refusal"].as_str().unwrap();
    assert!(refusal.contains(reason), "{refusal}");
    let table = workshop.plugin(&["inspect", "clock.wasm"]).expect(3).output;
    assert!(
        table.contains(reason) && !table.contains("[generators"),
        "{table}"
    );
}
