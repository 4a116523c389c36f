//! What the plugin does, without WIT.

use keywright_plugin_support::{
    Failure, Members, PasswordRules, Violation, canonical, no_settings, written,
};
use rand_core::CryptoRng;
use serde_json::Value;

/// Brings parameters into their canonical form, in which every one is written out.
///
/// # Errors
///
/// [`Failure::InvalidParameters`] with the rule that they break; [`Failure::Misconfigured`] for any setting.
pub fn normalize(parameters: &str, settings: &str) -> Result<String, Failure> {
    no_settings(settings)?;
    let rules = parse(parameters).map_err(Failure::InvalidParameters)?;
    written(&rules)
}

/// Makes a password from canonical parameters and returns it as a JSON string.
///
/// # Errors
///
/// [`Failure::Other`] when the parameters are not canonical; [`Failure::Misconfigured`] for any setting.
pub fn generate(
    parameters: &str,
    settings: &str,
    random: &mut impl CryptoRng,
) -> Result<String, Failure> {
    no_settings(settings)?;
    let rules: PasswordRules = canonical(parameters)?;
    written(&rules.generate(random))
}

/// Checks a password that a caller sets: any string but the empty one.
///
/// # Errors
///
/// [`Failure::InvalidValue`] when it is another kind of JSON, or empty; [`Failure::Misconfigured`] for any setting.
pub fn accept(value: &str, settings: &str) -> Result<String, Failure> {
    no_settings(settings)?;
    match serde_json::from_str(value) {
        Ok(Value::String(password)) if !password.is_empty() => written(&password),
        Ok(Value::String(_)) => Err(Failure::InvalidValue(Violation::of_whole(
            "must not be empty",
        ))),
        _ => Err(Failure::InvalidValue(Violation::of_whole(
            "must be a string",
        ))),
    }
}

fn parse(parameters: &str) -> Result<PasswordRules, Violation> {
    let mut members = Members::parse(parameters)?;
    let rules = PasswordRules::take(&mut members)?;
    members.finish()?;
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
    fn canonical_parameters_are_written_out_and_their_own_canonical_form() {
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
    fn an_unknown_parameter_is_named() {
        assert_eq!(
            normalize(r#"{"key_length":2048}"#, "{}"),
            Err(Failure::InvalidParameters(Violation::of(
                "key_length",
                "is not a known member"
            )))
        );
    }

    #[test]
    fn a_generated_password_matches_the_schema_and_follows_the_random_stream() {
        let password =
            |seed| generate(DEFAULTS, "{}", &mut ChaCha12Rng::seed_from_u64(seed)).unwrap();
        assert!(matches(VALUE_SCHEMA, &password(1)));
        assert_eq!(password(1), password(1));
        assert_ne!(password(1), password(2));
    }

    #[test]
    fn generate_takes_canonical_parameters_alone() {
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
    fn any_text_but_the_empty_one_may_be_set() {
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
    fn a_setting_is_refused_by_every_function() {
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
