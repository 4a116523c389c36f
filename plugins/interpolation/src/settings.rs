//! The settings of the plugin.

use keywright_plugin_support::{Fields, Violation};

/// The settings of the plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Setting `reference_keys`: the fields of `credentials` that may contain a reference. The default is `credhub_ref`,
    /// `credhub-ref`, `store-ref`. If a `credentials` object has several of them, the first in this list is used.
    pub reference_keys: Vec<String>,
    /// Setting `references_in_strings`: whether `((name))` is a reference in every string of the document, to a credential of
    /// any type. The default is false.
    pub references_in_strings: bool,
}

impl Settings {
    /// Parses the settings.
    ///
    /// # Errors
    ///
    /// If there is an unknown setting, or a setting is malformed or empty. The text is for the operator.
    pub fn parse(settings: &str) -> Result<Self, String> {
        let mut fields =
            Fields::parse(settings).map_err(|_| "the settings must be a JSON object".to_owned())?;
        let malformed = |violation: Violation| {
            let setting = violation.field.unwrap_or_default();
            format!("the setting `{setting}` {}", violation.rule)
        };
        let has_keys = fields.has(REFERENCE_KEYS);
        let given = Self {
            reference_keys: fields.take_texts(REFERENCE_KEYS).map_err(malformed)?,
            references_in_strings: fields.take_flag(REFERENCES_IN_STRINGS).map_err(malformed)?,
        };
        fields.finish().map_err(|violation| {
            format!("unknown setting `{}`", violation.field.unwrap_or_default())
        })?;
        if !has_keys {
            return Ok(Self {
                references_in_strings: given.references_in_strings,
                ..Self::default()
            });
        }
        if given.reference_keys.is_empty() || given.reference_keys.iter().any(String::is_empty) {
            return Err(format!(
                "the setting `{REFERENCE_KEYS}` must contain one or more field names"
            ));
        }
        Ok(given)
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

const REFERENCE_KEYS: &str = "reference_keys";
const REFERENCES_IN_STRINGS: &str = "references_in_strings";
const DEFAULT_KEYS: [&str; 3] = ["credhub_ref", "credhub-ref", "store-ref"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_keys_start_with_the_underscore_form() {
        let settings = Settings::parse("{}").unwrap();
        assert_eq!(
            settings.reference_keys,
            ["credhub_ref", "credhub-ref", "store-ref"]
        );
        assert!(!settings.references_in_strings);
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
    fn invalid_settings_are_reported() {
        for (settings, named) in [
            (r#"{"reference_key":["a"]}"#, "`reference_key`"),
            (r#"{"reference_keys":"a"}"#, "`reference_keys`"),
            (r#"{"reference_keys":[]}"#, "`reference_keys`"),
            (r#"{"reference_keys":null}"#, "`reference_keys`"),
            (r#"{"reference_keys":[""]}"#, "`reference_keys`"),
            (
                r#"{"references_in_strings":"true"}"#,
                "`references_in_strings`",
            ),
            (
                r#"{"references_in_strings":null}"#,
                "`references_in_strings`",
            ),
            ("[]", "JSON object"),
        ] {
            let text = Settings::parse(settings).unwrap_err();
            assert!(text.contains(named), "{settings}: {text}");
        }
    }
}
