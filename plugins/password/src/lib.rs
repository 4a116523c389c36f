//! Generates passwords: random text with at least one character of each requested character set.
//!
//! A password that was set can't be regenerated, so the plugin has no `recoverer`.

use keywright_plugin_support::{Failure, Fields, Generator, PasswordRules, Violation, filled_text};
use rand_core::CryptoRng;

#[cfg(target_arch = "wasm32")]
keywright_plugin_support::generator_component! {
    generator: Password,
    credential_type: "password",
    summary: "Random passwords",
    // With default parameters: 27 of the 30 characters are chosen from 62, the other three from their own sets.
    entropy_bits_min: 160,
}

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
