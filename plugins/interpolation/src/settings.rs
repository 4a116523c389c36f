//! The settings of the plugin, and their schema.

use serde::Deserialize;

/// The schema of the settings. The host validates them before it loads the plugin.
pub const SETTINGS_SCHEMA: &str = include_str!("settings.schema.json");

/// The settings of the plugin.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// Setting `reference_keys`: the fields of `credentials` that may contain a reference. The default is `credhub_ref`,
    /// `credhub-ref`, `store-ref`. If a `credentials` object has several of them, the first in this list is used.
    pub reference_keys: Vec<String>,
    /// Setting `references_in_strings`: whether `((name))` is a reference in every string of the document, to a credential of
    /// any type. The default is false.
    pub references_in_strings: bool,
}

impl Settings {
    /// Parses settings that match [`SETTINGS_SCHEMA`].
    ///
    /// # Errors
    ///
    /// If they do not match. The text is for the operator.
    pub fn parse(settings: &str) -> Result<Self, String> {
        serde_json::from_str(settings)
            .map_err(|_| "the settings do not match their schema".to_owned())
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            reference_keys: DEFAULT_KEYS.map(str::to_owned).to_vec(),
            references_in_strings: false,
        }
    }
}

const DEFAULT_KEYS: [&str; 3] = ["credhub_ref", "credhub-ref", "store-ref"];

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn defaults_are_as_in_the_schema() {
        let schema: Value = serde_json::from_str(SETTINGS_SCHEMA).unwrap();
        let default = |name: &str| &schema["properties"][name]["default"];
        let settings = Settings::parse("{}").unwrap();
        assert_eq!(json!(settings.reference_keys), *default("reference_keys"));
        assert_eq!(
            json!(settings.references_in_strings),
            *default("references_in_strings")
        );
    }

    #[test]
    fn each_setting_replaces_its_default() {
        let settings = Settings::parse(r#"{"reference_keys":["b","a"]}"#).unwrap();
        assert_eq!(settings.reference_keys, ["b", "a"]);
        assert!(!settings.references_in_strings);
        let settings = Settings::parse(r#"{"references_in_strings":true}"#).unwrap();
        assert_eq!(settings.reference_keys, DEFAULT_KEYS);
        assert!(settings.references_in_strings);
    }

    #[test]
    fn settings_of_other_types_are_refused() {
        for settings in [r#"{"reference_keys":"a"}"#, "null"] {
            assert!(Settings::parse(settings).is_err(), "{settings}");
        }
    }
}
