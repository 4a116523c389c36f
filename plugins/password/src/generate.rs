//! The plugin's functions, independent of WIT.

use keywright_plugin_support::{
    Failure, Fields, PasswordRules, Violation, canonical, no_settings, to_json,
};
use rand_core::CryptoRng;
use serde_json::Value;

/// Converts parameters to their canonical form, in which every parameter is present.
pub fn normalize(parameters: &str, settings: &str) -> Result<String, Failure> {
    no_settings(settings)?;
    let rules = parse(parameters).map_err(Failure::InvalidParameters)?;
    to_json(&rules)
}

/// Generates a password from canonical parameters and returns it as a JSON string.
pub fn generate(
    parameters: &str,
    settings: &str,
    random: &mut impl CryptoRng,
) -> Result<String, Failure> {
    no_settings(settings)?;
    let rules: PasswordRules = canonical(parameters)?;
    to_json(&rules.generate(random))
}

/// Checks a password that a caller sets: any string except the empty one.
pub fn accept(value: &str, settings: &str) -> Result<String, Failure> {
    no_settings(settings)?;
    match serde_json::from_str(value) {
        Ok(Value::String(password)) if !password.is_empty() => to_json(&password),
        Ok(Value::String(_)) => Err(Failure::InvalidValue(Violation::of_whole(
            "must not be empty",
        ))),
        _ => Err(Failure::InvalidValue(Violation::of_whole(
            "must be a string",
        ))),
    }
}

fn parse(parameters: &str) -> Result<PasswordRules, Violation> {
    let mut fields = Fields::parse(parameters)?;
    let rules = PasswordRules::take(&mut fields)?;
    fields.finish()?;
    Ok(rules)
}

#[cfg(test)]
mod tests {
    use rand::{SeedableRng, rngs::ChaCha12Rng};

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
            let normalized = normalize(given, "{}").unwrap();
            assert_eq!(normalized, expected);
            assert_eq!(normalize(&normalized, "{}").unwrap(), normalized);
            assert!(matches(PARAMETERS_SCHEMA, &normalized));
        }
    }

    #[test]
    fn unknown_parameter_is_reported() {
        assert_eq!(
            normalize(r#"{"key_length":2048}"#, "{}"),
            Err(Failure::InvalidParameters(Violation::of(
                "key_length",
                "is unknown"
            )))
        );
    }

    #[test]
    fn password_matches_schema_and_follows_random_stream() {
        let password =
            |seed| generate(DEFAULTS, "{}", &mut ChaCha12Rng::seed_from_u64(seed)).unwrap();
        assert!(matches(VALUE_SCHEMA, &password(1)));
        assert_eq!(password(1), password(1));
        assert_ne!(password(1), password(2));
    }

    #[test]
    fn generate_rejects_parameters_that_are_not_canonical() {
        for parameters in [
            "{}",
            "",
            &DEFAULTS.replace("30", "\"30\""),
            r#"{"length":30}"#,
        ] {
            let failure = generate(parameters, "{}", &mut ChaCha12Rng::seed_from_u64(1));
            assert!(matches!(failure, Err(Failure::Other(_))), "{parameters}");
        }
    }

    #[test]
    fn any_string_except_the_empty_one_is_accepted() {
        for value in [r#""x""#, r#"" ""#, r#""päss\u0000""#] {
            let accepted: Value = serde_json::from_str(&accept(value, "{}").unwrap()).unwrap();
            assert_eq!(accepted, serde_json::from_str::<Value>(value).unwrap());
        }
        for value in [r#""""#, "3", "null", "{}", r#"["x"]"#] {
            assert!(
                matches!(accept(value, "{}"), Err(Failure::InvalidValue(_))),
                "{value}"
            );
        }
    }

    #[test]
    fn every_function_rejects_settings() {
        let settings = r#"{"length":5}"#;
        let random = &mut ChaCha12Rng::seed_from_u64(1);
        for result in [
            normalize("{}", settings),
            generate(DEFAULTS, settings, random),
            accept("\"x\"", settings),
        ] {
            assert!(matches!(result, Err(Failure::Misconfigured(text)) if text.contains("length")));
        }
    }
}
