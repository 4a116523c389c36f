//! The result of an entropy test: its report, and the violated rules with their messages.

use serde::{Deserialize, Serialize};

/// The version of the test's rules. Results of other versions are discarded.
pub(crate) const RULES_VERSION: u32 = 2;

/// The result of an entropy test.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct EntropyReport {
    /// The declared minimum of random bits in a value.
    pub declared_bits: u32,
    /// The minimum of bits drawn for a value.
    pub drawn_bits: u64,
    /// The number of values, each generated from different random bytes.
    pub values: u32,
    /// The number of flipped bits, each in a separate call.
    pub flipped_bits: u32,
    /// The violated rules, in order. A violation often entails violations of later rules.
    pub faults: Vec<EntropyError>,
}

impl EntropyReport {
    /// Returns the first violated rule, if any.
    pub fn fault(&self) -> Option<&EntropyError> {
        self.faults.first()
    }
}

/// A violated rule of the entropy test. `Display` completes the sentence "its values are not random enough: …".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case", tag = "rule")]
#[expect(missing_docs, reason = "the messages say what the variants mean")]
pub enum EntropyError {
    #[error(
        "a value holds at most {held_bits} random bits, by the frequencies of characters at each position of {values} \
         values, but {declared_bits} are declared; positions that never change: {fixed_positions}"
    )]
    Biased {
        values: u32,
        held_bits: u32,
        declared_bits: u32,
        fixed_positions: u32,
    },
    #[error(
        "{} is the same in all {values} calls, although each call got different random bytes; plugins must get random bytes \
         only from wasi:random/random, not from the language's own generator",
        part_name(.place)
    )]
    Constant { place: String, values: u32 },
    #[error(
        "{pairs} pairs of {values} values are equal, which is implausible for values with the declared \
         {declared_bits} random bits"
    )]
    Repeated {
        values: u32,
        pairs: u32,
        declared_bits: u32,
    },
    #[error(
        "it drew {drawn_bits} random bits for a value, but {declared_bits} are declared (entropy-bits-min)"
    )]
    TooFewDrawn { drawn_bits: u64, declared_bits: u32 },
    #[error(
        "two calls with the same random bytes returned different values, so the values also depend on something other \
         than the host's randomness"
    )]
    Unrepeatable,
    #[error(
        "only {effective_bits} of {flipped_bits} flipped random bits changed the value; the plugin uses too few of the {drawn_bits} \
         bits that it draws, although it declares {declared_bits}"
    )]
    Unused {
        flipped_bits: u32,
        effective_bits: u32,
        drawn_bits: u64,
        declared_bits: u32,
    },
}

fn part_name(path: &str) -> String {
    if path.is_empty() {
        "the value".to_owned()
    } else {
        format!("the field {path}")
    }
}
