//! The settings of the plugin.

use keywright_plugin_support::Fields;

/// The fields of `credentials` that may contain a reference.
///
/// Setting `reference_keys`: an array of strings. The default is `credhub_ref`, `credhub-ref`, `store-ref`. If a `credentials`
/// object has several of them, the first in this list is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReferenceKeys(Vec<String>);

impl ReferenceKeys {
    /// Parses the settings.
    ///
    /// # Errors
    ///
    /// If there is an unknown setting, or the list is malformed or empty. The text is for the operator.
    pub fn parse(settings: &str) -> Result<Self, String> {
        let mut fields =
            Fields::parse(settings).map_err(|_| "the settings must be a JSON object".to_owned())?;
        let is_given = fields.has(SETTING);
        let keys = fields
            .take_texts(SETTING)
            .map_err(|violation| format!("the setting `{SETTING}` {}", violation.rule))?;
        fields.finish().map_err(|violation| {
            format!("unknown setting `{}`", violation.field.unwrap_or_default())
        })?;
        if !is_given {
            return Ok(Self::default());
        }
        if keys.is_empty() || keys.iter().any(String::is_empty) {
            return Err(format!(
                "the setting `{SETTING}` must contain one or more field names"
            ));
        }
        Ok(Self(keys))
    }

    /// Returns the keys in order of precedence.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

impl Default for ReferenceKeys {
    fn default() -> Self {
        Self(DEFAULT_KEYS.map(str::to_owned).to_vec())
    }
}

const SETTING: &str = "reference_keys";
const DEFAULT_KEYS: [&str; 3] = ["credhub_ref", "credhub-ref", "store-ref"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_keys_start_with_the_underscore_form() {
        let keys = ReferenceKeys::parse("{}").unwrap();
        assert_eq!(
            keys.iter().collect::<Vec<_>>(),
            ["credhub_ref", "credhub-ref", "store-ref"]
        );
    }

    #[test]
    fn setting_replaces_the_default_keys() {
        let keys = ReferenceKeys::parse(r#"{"reference_keys":["b","a"]}"#).unwrap();
        assert_eq!(keys.iter().collect::<Vec<_>>(), ["b", "a"]);
    }

    #[test]
    fn invalid_settings_are_reported() {
        for (settings, named) in [
            (r#"{"reference_key":["a"]}"#, "`reference_key`"),
            (r#"{"reference_keys":"a"}"#, "`reference_keys`"),
            (r#"{"reference_keys":[]}"#, "`reference_keys`"),
            (r#"{"reference_keys":null}"#, "`reference_keys`"),
            (r#"{"reference_keys":[""]}"#, "`reference_keys`"),
            ("[]", "JSON object"),
        ] {
            let text = ReferenceKeys::parse(settings).unwrap_err();
            assert!(text.contains(named), "{settings}: {text}");
        }
    }
}
