//! The plugin's functions, independent of WIT.

use keywright_plugin_support::{Failure, Fields, Generator, PasswordRules, Violation, filled_text};
use rand_core::CryptoRng;

/// Generates passwords.
pub struct Password;

impl Generator for Password {
    type Parameters = PasswordRules;
    type Value = String;

    fn take(fields: &mut Fields) -> Result<PasswordRules, Violation> {
        PasswordRules::take(fields)
    }

    fn make(rules: PasswordRules, random: &mut impl CryptoRng) -> Result<String, Failure> {
        Ok(rules.generate(random))
    }

    fn check(value: &str, _random: &mut impl CryptoRng) -> Result<String, Failure> {
        filled_text(value)
    }
}

#[cfg(test)]
mod tests {
    use rand::{SeedableRng, rngs::ChaCha12Rng};
    use serde_json::Value;

    use super::*;
    use crate::{PARAMETERS_SCHEMA, VALUE_SCHEMA};

    const DEFAULTS: &str = r#"{"length":30,"exclude_upper":false,"exclude_lower":false,"exclude_number":false,"include_special":false}"#;

    fn matches(schema: &str, instance: &str) -> bool {
        let schema: Value = serde_json::from_str(schema).unwrap();
        jsonschema::draft202012::new(&schema)
            .unwrap()
            .is_valid(&serde_json::from_str(instance).unwrap())
    }

    #[test]
    fn normalize_fills_in_defaults_and_is_idempotent() {
        for (given, expected) in [
            ("{}", DEFAULTS.to_owned()),
            (r#"{"length":40}"#, DEFAULTS.replace("30", "40")),
            (
                r#"{"include_special":true}"#,
                DEFAULTS.replace("special\":false", "special\":true"),
            ),
        ] {
            let normalized = Password::normalize(given, "{}").unwrap();
            assert_eq!(normalized, expected);
            assert_eq!(Password::normalize(&normalized, "{}").unwrap(), normalized);
            assert!(matches(PARAMETERS_SCHEMA, &normalized));
        }
    }

    #[test]
    fn password_matches_schema_and_follows_random_stream() {
        let password = |seed| {
            Password::generate(DEFAULTS, "{}", &mut ChaCha12Rng::seed_from_u64(seed)).unwrap()
        };
        assert!(matches(VALUE_SCHEMA, &password(1)));
        assert_eq!(password(1), password(1));
        assert_ne!(password(1), password(2));
    }
}
