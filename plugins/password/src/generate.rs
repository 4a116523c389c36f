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
