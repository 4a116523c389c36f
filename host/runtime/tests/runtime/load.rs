//! Every load error names the plugin, its component and a remedy.

use std::path::PathBuf;

use keywright_runtime::{Limits, PluginConfig, RuntimeConfig};
use serde_json::json;

use crate::{component, config, dummy, load, plugin, unedited};

/// Returns the error for a plugin that is configured under this name.
fn refusal(name: &str, plugin: PluginConfig) -> String {
    let path = plugin.component.to_string();
    let mut config = config();
    config.generators.insert(name.to_owned(), plugin);
    let text = refusal_of(&config);
    assert!(
        text.starts_with(&format!(
            "the plugin {name} (component {path}) is refused: "
        )),
        "{text}"
    );
    text
}

fn refusal_of(config: &RuntimeConfig) -> String {
    match load(config) {
        Ok(_) => panic!("nothing was refused"),
        Err(refused) => refused.to_string(),
    }
}

fn plain() -> PluginConfig {
    plugin(component("plain"), &json!({}))
}

fn of(component: PathBuf) -> PluginConfig {
    plugin(component, &json!({}))
}

/// Returns the interfaces in another version, as if all of them were introduced in it.
fn in_version(text: &str, version: &str) -> String {
    let wasi = text.replace("random@0.2.0", "random@wasi");
    let ours = wasi.replace("@0.2.0", &format!("@{version}"));
    let ours = ours.replace("version = 0.1.0", &format!("version = {version}"));
    let ours = ours.replace("version = 0.2.0", &format!("version = {version}"));
    ours.replace("random@wasi", "random@0.2.0")
}

#[test]
fn a_component_for_a_later_patch_version_is_accepted() {
    let world = "world w { include keywright:generator/generator-plugin@0.2.0; }";
    let patched = dummy("patched", world, |text| in_version(&text, "0.2.7"));
    // The component was linked, and its description was requested.
    let refused = refusal("plain", of(patched));
    let expected = "its describe function failed: it trapped";
    assert!(refused.contains(expected), "{refused}");
}

#[test]
fn interfaces_of_later_versions_are_missing_in_earlier_ones() {
    let world = "world w { include keywright:generator/generator-plugin@0.2.0; }";
    let early = dummy("early-notes", world, |text| in_version(&text, "0.1.0"));
    let refused = refusal("plain", of(early));
    let expected = "it was built for keywright:generator/notes 0.1.0, and this server has 0.2.0";
    assert!(refused.contains(expected), "{refused}");
}

#[test]
fn missing_and_incompatible_exports_are_rejected() {
    let refused = |name, exports: &str, edit: fn(String) -> String| {
        refusal(
            "plain",
            of(dummy(name, &format!("world w {{ {exports} }}"), edit)),
        )
    };
    let descriptor = "export keywright:generator/descriptor@0.2.0;";
    let generator = "export keywright:generator/generator@0.2.0;";
    let issued = "export keywright:generator/issued-generator@0.2.0;";
    let none = refused("no-descriptor", generator, unedited);
    assert!(
        none.contains("does not export keywright:generator/descriptor@0.2.0"),
        "{none}"
    );
    let none = refused("no-generator", descriptor, unedited);
    assert!(
        none.contains("does not export keywright:generator/generator@0.2.0"),
        "{none}"
    );
    let both = refused(
        "both",
        &format!("{descriptor}{generator}{issued}"),
        unedited,
    );
    assert!(
        both.contains("exports more than one of generator, issued-generator"),
        "{both}"
    );
    let exports = format!("{descriptor}{generator}export keywright:generator/normalizer@0.2.0;");
    let differs = refused("differs", &exports, |text| {
        text.replace(
            "normalize: func(parameters: string, settings",
            "normalize: func(settings",
        )
    });
    assert!(
        differs.contains("its export keywright:generator/normalizer@0.2.0 differs"),
        "{differs}"
    );
    let mut config = config();
    config.resolver = Some(plain());
    let refused = refusal_of(&config);
    assert!(refused.starts_with("the plugin resolver "), "{refused}");
    assert!(
        refused.contains("does not export keywright:interpolation/resolver@0.2.0"),
        "{refused}"
    );
}

#[test]
fn settings_larger_than_the_input_limit_are_rejected() {
    let settings = json!({"a": "x".repeat(128 * 1024)});
    let refused = refusal("plain", plugin(component("plain"), &settings));
    let expected = "its settings are larger than its input_bytes_max";
    assert!(refused.contains(expected), "{refused}");
}

#[test]
fn a_guest_with_too_much_initial_memory_is_rejected() {
    let limits = Limits {
        memory_bytes_max: 64 * 1024,
        ..Limits::default()
    };
    let refused = refusal("plain", PluginConfig { limits, ..plain() });
    assert!(refused.contains("memory"), "{refused}");
}
