//! Generators whose values fail the entropy test are rejected on load, with the rule that they break.

use std::{collections::BTreeSet, fs, os::unix::fs::PermissionsExt, path::Path};

use keywright_runtime::{LoadError, PluginConfig, RuntimeConfig, SandboxConfig};
use serde_json::{Value, json};

use crate::{component, config, load, plugin, scratch};

fn refusal(name: &str, plugin: PluginConfig) -> Option<String> {
    let mut config = config();
    config.generators.insert(name.to_owned(), plugin);
    load(&config).err().map(|refused| refused.to_string())
}

fn careless(breaks: Option<&str>) -> PluginConfig {
    let settings = breaks.map_or(json!({}), |breaks| json!({"breaks": breaks}));
    PluginConfig {
        derived: false,
        ..plugin(component("careless"), &settings)
    }
}

#[test]
fn derived_values_are_rejected_unless_allowed() {
    let hostile = |derived| PluginConfig {
        derived,
        ..plugin(component("hostile"), &json!({}))
    };
    let refused = refusal("hostile", hostile(false)).unwrap();
    assert!(refused.contains("set derived = true"), "{refused}");
    assert_eq!(refusal("hostile", hostile(true)), None);
}

#[test]
fn allowing_derived_values_does_not_exempt_constant_values() {
    let careless = PluginConfig {
        derived: true,
        ..careless(Some("constant"))
    };
    assert!(refusal("careless", careless).is_some());
}

#[test]
fn a_generator_that_fails_for_its_example_is_rejected() {
    for (breaks, words) in [
        (
            "example",
            "it could not generate a value for the entropy test with the parameters {}: the plugin careless reported",
        ),
        (
            "nothing",
            "invalid settings: the plugin rejected them; `keywright plugin run` prints its message",
        ),
    ] {
        let refused = refusal("careless", careless(Some(breaks))).unwrap();
        assert!(refused.contains(words), "{refused}");
    }
}

#[test]
fn entropy_reports_are_cached_with_the_compiled_component() {
    let folder = scratch().join("conformance-cache");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
    let start = |breaks| {
        let mut config = RuntimeConfig {
            sandbox: SandboxConfig::new(folder.clone()),
            ..config()
        };
        let plugin = careless(breaks);
        config.generators.insert("careless".to_owned(), plugin);
        load(&config)
    };
    assert!(start(None).is_ok());
    let cached = reports(&folder);
    assert_eq!(cached.len(), 1);
    assert!(start(None).is_ok());
    assert_eq!(reports(&folder), cached);

    for _ in 0..2 {
        let refused = start(Some("biased"));
        assert!(matches!(refused, Err(LoadError::Plugin(_))));
    }
    assert_eq!(reports(&folder).len(), 2);
}

#[test]
fn a_tested_component_is_retested_if_changed_or_with_settings() {
    let folder = scratch().join("tested");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir(&folder).unwrap();
    let cache = folder.join("cache");
    let own = fs::read(component("careless")).unwrap();
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, &own);
    let digits = digest.as_ref().iter().map(|byte| format!("{byte:02x}"));
    let tested = BTreeSet::from([digits.collect()]);
    let start = |plugin: PluginConfig| {
        let mut config = RuntimeConfig {
            sandbox: SandboxConfig::new(cache.clone()),
            tested: tested.clone(),
            ..config()
        };
        config.generators.insert("careless".to_owned(), plugin);
        load(&config)
    };
    assert!(start(careless(None)).is_ok());
    assert!(reports(&cache).is_empty());

    // Appends an empty custom section with the name `x`.
    let changed = folder.join("changed.wasm");
    fs::write(&changed, [&own[..], &[0, 2, 1, b'x']].concat()).unwrap();
    let other = PluginConfig {
        derived: false,
        ..plugin(changed, &json!({}))
    };
    assert!(start(other).is_ok());
    assert_eq!(reports(&cache).len(), 1);

    let refused = start(careless(Some("constant")));
    assert!(matches!(refused, Err(LoadError::Plugin(_))));
}

/// Returns the reports in a cache: the name, the time of the last change and the content of each.
fn reports(folder: &Path) -> Vec<(String, std::time::SystemTime, Value)> {
    const TAG_BYTES: usize = 32;
    let mut reports: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().extension() == Some("entropy".as_ref()))
        .map(|entry| {
            let written = entry.metadata().unwrap().modified().unwrap();
            let text = fs::read(entry.path()).unwrap();
            let report = serde_json::from_slice(&text[TAG_BYTES..]).unwrap();
            (entry.file_name().into_string().unwrap(), written, report)
        })
        .collect();
    reports.sort_by(|(one, ..), (other, ..)| one.cmp(other));
    reports
}
