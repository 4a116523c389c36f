//! Settings that do not match the schema that a plugin declares for them.

use keywright_harness::{Options, Server, component};
use serde_json::json;

/// The invalid setting of [`options`], with its keyword and JSON Pointer.
const REFUSED: &str =
    r#"size must be of type integer (violates "type" of its schema at the JSON Pointer "/size")"#;

fn options(settings: &str) -> Options {
    let section = format!(
        "component = \"{}\"\ngrants = [\"random\"]\nsettings = {{ {settings} }}",
        component("current-generator").display()
    );
    Options::default().generator("plain-current", &section)
}

#[test]
fn the_server_does_not_start_with_invalid_settings() {
    for (settings, reason) in [
        ("size = \"hunter2\"", REFUSED),
        (
            "sise = \"hunter2\"",
            r#"sise is unknown (violates "additionalProperties" of its schema at the JSON Pointer "")"#,
        ),
    ] {
        let refusal = Server::refusal(&options(settings)).replace('\\', "");
        let expected = "the plugin plain-current ";
        assert!(refusal.contains(expected), "{refusal}");
        let expected = format!("is refused: invalid settings: {reason}");
        assert!(refusal.contains(&expected), "{refusal}");
        assert!(!refusal.contains("hunter2"), "{refusal}");
    }
}

#[tokio::test]
async fn a_reload_with_invalid_settings_keeps_the_previous_plugins() {
    let server = Server::start_with(&options("size = 3")).await;
    let reported = server.reload_plugins(&options("size = \"hunter2\"")).await;
    assert!(reported.contains("calls use the previous plugins"));
    let log = server.log();
    assert!(log.contains("invalid settings: size must be"), "{log}");
    assert!(!log.contains("hunter2"), "{log}");
    let made = server.generate("/a", "plain-current", json!({})).await;
    let made = made.expect(200).json();
    assert_eq!(made["value"]["settings"], json!({"size": 3}));
}

#[tokio::test]
async fn settings_of_a_plugin_without_a_schema_are_not_checked() {
    let section = format!(
        "component = \"{}\"\ngrants = [\"random\"]\nsettings = {{ size = \"any\" }}",
        component("released-0-1-0-generator").display()
    );
    let options = Options::default().generator("plain-0-1-0", &section);
    let server = Server::start_with(&options).await;
    let made = server.generate("/a", "plain-0-1-0", json!({})).await;
    made.expect(200);
}
