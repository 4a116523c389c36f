//! Settings of plugins, and the schema that a plugin may declare for them.

use serde_json::Value;

use super::{Checker, SchemaError, compile, is_of_objects};
use crate::{
    call::Plugin,
    interfaces::{Exported, Function},
    load_error::PluginRefusedError,
};

pub(crate) struct SettingsSchema {
    checker: Checker,
    /// The schema, unchanged.
    pub(crate) declared: Value,
}

impl SettingsSchema {
    /// Calls the function that describes a plugin's settings. Returns `None` if the plugin does not export it.
    ///
    /// # Errors
    /// If the function fails, or its result is malformed, exceeds a limit, or is not of type `object`.
    pub(crate) fn of<F>(
        plugin: &Plugin,
        function: Option<&Exported<F>>,
    ) -> Result<Option<Self>, PluginRefusedError>
    where
        F: for<'a> Function<Parameters<'a> = (), Result = String>,
    {
        let Some(function) = function else {
            return Ok(None);
        };
        let text = plugin.call_to_load(F::NAME, |store, instance| {
            function.call(store, instance, ())
        })?;
        let parsed = Self::parse(&text).map_err(|malformed| PluginRefusedError::SchemaMalformed {
            which: "settings",
            malformed,
        });
        parsed.map(Some)
    }

    fn parse(text: &str) -> Result<Self, SchemaError> {
        let (declared, checker) = compile(text)?;
        if !is_of_objects(&declared) {
            return Err(SchemaError::NotOfObjects);
        }
        Ok(Self { checker, declared })
    }

    /// Checks a plugin's settings, which are JSON text.
    ///
    /// # Errors
    /// [`PluginRefusedError::SettingsRefused`], with names of settings but none of their values.
    pub(crate) fn check(&self, settings: &str) -> Result<(), PluginRefusedError> {
        let settings = keywright_json::read(settings).unwrap_or_default();
        match self.checker.broken_rule(&settings) {
            Some(broken) => Err(PluginRefusedError::SettingsRefused(
                broken.violation.to_string(),
            )),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_refusal_has_setting_and_rule_without_the_value() {
        let schema = json!({
            "type": "object",
            "properties": {
                "keys": {"type": "array", "items": {"type": "string"}},
                "issuer": {"type": "string"},
            },
            "required": ["issuer"],
            "additionalProperties": false,
        });
        let schema = SettingsSchema::parse(&schema.to_string()).unwrap();
        for (settings, expected) in [
            (
                json!({"issuer": "a", "keys": ["a", 70707]}),
                "keys.1 must be a string",
            ),
            (json!({}), "issuer is required"),
            (json!({"issuer": "a", "key": 70707}), "key is unknown"),
        ] {
            let refusal = schema.check(&settings.to_string()).unwrap_err();
            assert_eq!(
                refusal.to_string(),
                format!("invalid settings: {expected}"),
                "{settings}"
            );
        }
        assert!(schema.check(r#"{"issuer":"a"}"#).is_ok());
    }

    #[test]
    fn a_schema_of_non_objects_is_refused() {
        for schema in [json!(true), json!({"type": "string"}), json!({})] {
            let parsed = SettingsSchema::parse(&schema.to_string());
            assert!(matches!(parsed, Err(SchemaError::NotOfObjects)), "{schema}");
        }
    }
}
