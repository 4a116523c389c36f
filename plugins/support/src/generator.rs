use rand_core::CryptoRng;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{Failure, Fields, Violation, canonical, no_settings, to_json};

/// A generator without settings. It implements `take`, `make` and `check`; [`generator_component!`](crate::generator_component)
/// exports the other methods through WIT.
pub trait Generator {
    /// The canonical parameters.
    type Parameters: Serialize + DeserializeOwned;

    /// The value.
    type Value: Serialize;

    /// Takes the plugin's parameters from the caller's fields. Remaining fields are rejected.
    fn take(fields: &mut Fields) -> Result<Self::Parameters, Violation>;

    /// Generates a value.
    fn make(
        parameters: Self::Parameters,
        random: &mut impl CryptoRng,
    ) -> Result<Self::Value, Failure>;

    /// Checks a value that a caller sets, as JSON, and returns the value to store.
    fn check(value: &str, random: &mut impl CryptoRng) -> Result<Self::Value, Failure>;

    /// Converts parameters to their canonical form, in which every parameter is present.
    fn normalize(parameters: &str, settings: &str) -> Result<String, Failure> {
        no_settings(settings)?;
        let taken = Fields::parse(parameters).and_then(|mut fields| {
            let taken = Self::take(&mut fields)?;
            fields.finish()?;
            Ok(taken)
        });
        to_json(&taken.map_err(Failure::InvalidParameters)?)
    }

    /// Generates a value from canonical parameters and returns it as JSON.
    fn generate(
        parameters: &str,
        settings: &str,
        random: &mut impl CryptoRng,
    ) -> Result<String, Failure> {
        no_settings(settings)?;
        to_json(&Self::make(canonical(parameters)?, random)?)
    }

    /// Checks a value that a caller sets, and returns the value to store as JSON.
    fn accept(value: &str, settings: &str, random: &mut impl CryptoRng) -> Result<String, Failure> {
        no_settings(settings)?;
        to_json(&Self::check(value, random)?)
    }
}

/// Checks that a value is a JSON string that is not empty, and returns the string.
pub fn filled_text(value: &str) -> Result<String, Failure> {
    match serde_json::from_str(value) {
        Ok(Value::String(text)) if !text.is_empty() => Ok(text),
        _ => Err(Failure::InvalidValue(Violation::of_whole(
            "must be a non-empty string",
        ))),
    }
}

#[cfg(test)]
mod tests {
    use rand::{SeedableRng, rngs::ChaCha12Rng};

    use super::*;

    /// Generates as many letters as requested.
    struct Letters;

    impl Generator for Letters {
        type Parameters = (i64, String);
        type Value = String;

        fn take(fields: &mut Fields) -> Result<Self::Parameters, Violation> {
            let length = fields.take_integer("length")?.unwrap_or(3);
            Ok((length, "canonical".to_owned()))
        }

        fn make(
            (length, _): Self::Parameters,
            _random: &mut impl CryptoRng,
        ) -> Result<String, Failure> {
            Ok((0..length).map(|_| 'a').collect())
        }

        fn check(value: &str, _random: &mut impl CryptoRng) -> Result<String, Failure> {
            filled_text(value)
        }
    }

    fn random() -> ChaCha12Rng {
        ChaCha12Rng::seed_from_u64(1)
    }

    #[test]
    fn parameters_that_are_not_canonical_are_rejected() {
        for parameters in ["", "{}", r#"["3","canonical"]"#, r#"[3, "canonical", 4]"#] {
            let failure = Letters::generate(parameters, "{}", &mut random());
            assert!(matches!(failure, Err(Failure::Other(_))), "{parameters}");
        }
    }

    #[test]
    fn every_function_rejects_settings() {
        let settings = r#"{"colour":"red"}"#;
        for result in [
            Letters::normalize("{}", settings),
            Letters::generate(r#"[3,"canonical"]"#, settings, &mut random()),
            Letters::accept(r#""x""#, settings, &mut random()),
        ] {
            assert!(matches!(result, Err(Failure::Misconfigured(text)) if text.contains("colour")));
        }
    }
}
