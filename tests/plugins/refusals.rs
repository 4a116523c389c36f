//! An invalid plugin or setting of a plugin prevents the start, with an error that names the plugin and the remedy.

use std::fs;

use keywright_harness::{Options, Server, Text, component, digest};
use serde_json::json;
use tempfile::TempDir;

/// Returns the configuration of a component.
fn section(path: &std::path::Path, more: &str) -> String {
    format!("component = \"{}\"\n{more}", path.display())
}

#[track_caller]
fn assert_refused(options: &Options, parts: &[&str]) {
    let refusal = Server::refusal(options);
    for part in parts {
        refusal.assert_contains(part);
    }
}

/// Builds a generator `plain` with this import and the exports of generators, without functions.
fn importing(files: &TempDir, import: &str) -> Options {
    let exporting = exporting("0.2.0");
    let text = exporting.replacen("(component", &format!("(component {import}"), 1);
    of_text(files, &text)
}

/// Builds a component with the exports of generators in this version, without functions.
fn exporting(version: &str) -> String {
    format!(
        r#"(component
            (instance $empty)
            (export "keywright:generator/descriptor@{version}" (instance $empty))
            (export "keywright:generator/generator@{version}" (instance $empty))
        )"#
    )
}

/// Builds a generator `plain` from the text format of a component.
fn of_text(files: &TempDir, text: &str) -> Options {
    let path = files.path().join("plain.wasm");
    fs::write(&path, wat::parse_str(text).unwrap()).unwrap();
    Options::default().generator("plain", &section(&path, "grants = [\"random\"]"))
}

#[test]
fn exceeding_a_limit_without_a_setting_suggests_no_setting() {
    let files = TempDir::new().unwrap();
    let instances = "(core instance (instantiate $module))".repeat(65);
    let options = importing(&files, &format!("(core module $module) {instances}"));
    let remedy = "contains 65 core module instances; use another component";
    assert_refused(&options, &[remedy]);
}

#[test]
fn plugin_of_another_type_is_rejected() {
    let plain = section(&component("plain"), "grants = [\"random\"]");
    let options = Options::default().generator("token", &plain);
    assert_refused(
        &options,
        &[
            "the plugin token",
            "it generates credentials of type",
            "plain",
        ],
    );
}

#[test]
fn plugin_without_a_needed_grant_is_rejected() {
    let hostile = component("hostile");
    for (grants, import, missing) in [
        ("grants = []", "wasi:random/random@0.2.0", "random"),
        ("", "wasi:random/random@0.2.0", "random"),
        (
            "grants = [\"random\"]",
            "keywright:signing/issuer@0.2.0",
            "signing",
        ),
    ] {
        let options = Options::default().generator("hostile", &section(&hostile, grants));
        let what = format!("it imports {import}, which is not granted");
        assert_refused(
            &options,
            &["the plugin hostile", &what, missing, "to its grants"],
        );
    }
}

#[test]
fn plugin_with_an_unavailable_import_is_rejected() {
    let files = TempDir::new().unwrap();
    let import =
        r#"(import "wasi:filesystem/preopens@0.2.0" (instance (export "get-directories" (func))))"#;
    let what = "it imports wasi:filesystem/preopens@0.2.0, which this server does not provide";
    assert_refused(&importing(&files, import), &["the plugin plain", what]);
    let function = r#"(import "dial" (func))"#;
    assert_refused(&importing(&files, function), &["it imports dial, "]);
    let resource = r#"(import "a:b/c" (instance (export "r" (type (sub resource)))))"#;
    assert_refused(&importing(&files, resource), &["it imports a:b/c, "]);
}

#[test]
fn an_issuer_whose_methods_are_not_imported_needs_a_grant() {
    let files = TempDir::new().unwrap();
    let import = r#"(import "keywright:signing/issuer@0.2.0" (instance (export "issuer" (type (sub resource)))))"#;
    let what = "it imports keywright:signing/issuer@0.2.0, which is not granted";
    assert_refused(&importing(&files, import), &["the plugin plain", what]);
}

#[test]
fn plugin_for_a_newer_import_version_is_rejected() {
    let files = TempDir::new().unwrap();
    for (interface, version, known) in [
        ("wasi:random/random", "0.9.0", "0.2.0"),
        ("keywright:signing/issuer", "0.3.0", "0.1.0 and 0.2.0"),
    ] {
        let import = format!(r#"(import "{interface}@{version}" (instance (export "f" (func))))"#);
        let what = format!("it was built for {interface} {version}, and this server has {known}");
        assert_refused(&importing(&files, &import), &["the plugin plain", &what]);
    }
}

#[test]
fn plugin_for_an_unknown_export_version_is_rejected() {
    let files = TempDir::new().unwrap();
    for version in ["0.0.1", "0.3.0", "1.0.0"] {
        let text = exporting(version);
        let what = format!(
            "it was built for keywright:generator/descriptor {version}, and this server has 0.1.0 and 0.2.0"
        );
        assert_refused(&of_text(&files, &text), &["the plugin plain", &what]);
    }
}

#[test]
fn component_other_than_the_pinned_one_is_rejected() {
    let pinned = format!("sha256 = \"{}\"\ngrants = [\"random\"]", "0".repeat(64));
    let options = Options::default().generator("plain", &section(&component("plain"), &pinned));
    let configured = format!("but {} is configured", "0".repeat(64));
    let actual = format!("its SHA-256 is {}", digest_of_plain());
    assert_refused(&options, &["the plugin plain", &actual, &configured]);

    let malformed = "sha256 = \"abc\"\ngrants = [\"random\"]";
    let options = Options::default().generator("plain", &section(&component("plain"), malformed));
    assert_refused(
        &options,
        &["the plugin plain", "64 lower-case hexadecimal digits"],
    );
}

fn digest_of_plain() -> String {
    let digest = digest(&fs::read(component("plain")).unwrap());
    digest.replace("sha256:", "")
}

#[test]
fn files_that_are_not_components_are_rejected() {
    let files = TempDir::new().unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = files.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    };
    for (path, what) in [
        (files.path().join("absent.wasm"), "the file does not exist"),
        (
            file("text.wasm", b"no component"),
            "is not a WebAssembly component",
        ),
        (file("empty.wasm", b""), "is not a WebAssembly component"),
        (
            file("module.wasm", b"\0asm\x01\0\0\0"),
            "is a core WebAssembly module",
        ),
    ] {
        let options = Options::default().generator("plain", &section(&path, ""));
        assert_refused(
            &options,
            &["the plugin plain", &path.display().to_string(), what],
        );
    }
}

#[test]
fn invalid_type_names_are_rejected() {
    let plain = section(&component("plain"), "grants = [\"random\"]");
    for (name, what) in [
        ("value", "can only be set"),
        ("json", "can only be set"),
        ("Plain", "invalid type name"),
        ("a_b", "invalid type name"),
    ] {
        let options = Options::default().generator(name, &plain);
        assert_refused(&options, &[&format!("the plugin {name}"), what]);
    }
}

#[tokio::test]
async fn pinned_component_is_accepted() {
    let digest = digest_of_plain();
    let pinned = format!("sha256 = \"{digest}\"\ngrants = [\"random\"]");
    let options = Options::default().generator("plain", &section(&component("plain"), &pinned));
    let server = Server::start_with(&options).await;
    server.generated("/a", "plain", json!({})).await;
}

// Settings that do not match the schema that a plugin declares for them.

fn with_settings(settings: &str) -> Options {
    Options::default().plugin(
        "plain-current",
        "current-generator",
        &["random"],
        &format!("settings = {{ {settings} }}"),
    )
}

#[test]
fn the_server_does_not_start_with_invalid_settings() {
    for (settings, reason) in [
        ("size = \"hunter2\"", "size must be a whole number"),
        ("sise = \"hunter2\"", "sise is unknown"),
    ] {
        let refusal = Server::refusal(&with_settings(settings));
        let expected = "the plugin plain-current ";
        refusal.assert_contains(expected);
        let expected = format!("is refused: invalid settings: {reason}");
        refusal.assert_contains(&expected);
        refusal.assert_lacks("hunter2");
    }
}

#[tokio::test]
async fn a_reload_with_invalid_settings_keeps_the_previous_plugins() {
    let server = Server::start_with(&with_settings("size = 3")).await;
    let reported = server
        .reload_plugins(&with_settings("size = \"hunter2\""))
        .await;
    reported.assert_contains("calls use the previous plugins");
    let log = server.log();
    log.assert_contains("invalid settings: size must be");
    log.assert_lacks("hunter2");
    let made = server.generated("/a", "plain-current", json!({})).await;
    assert_eq!(made["value"]["settings"], json!({"size": 3}));
}

#[tokio::test]
async fn settings_of_a_plugin_without_a_schema_are_not_checked() {
    let options = Options::default().plugin(
        "plain-0-1-0",
        "released-0-1-0-generator",
        &["random"],
        "settings = { size = \"any\" }",
    );
    let server = Server::start_with(&options).await;
    server.generated("/a", "plain-0-1-0", json!({})).await;
}
