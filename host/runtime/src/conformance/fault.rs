//! The violations that the entropy test finds, with their messages.

use serde::{Deserialize, Serialize};

/// A violated rule of the entropy test. `Display` completes the sentence "its values are not random enough: …".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case", tag = "rule")]
pub enum EntropyFault {
    /// Rule 5: the characters of the values are too predictable.
    #[error(
        "the frequencies of characters at each position of {values} values show that they can't hold more than \
         {held_bits} random bits, but {declared_bits} are declared; {fixed_places} positions never change"
    )]
    Biased {
        /// The number of values compared.
        values: u32,
        /// The upper bound of their random bits.
        held_bits: u32,
        /// The declared random bits.
        declared_bits: u32,
        /// The number of positions with the same character in every value.
        fixed_places: u32,
    },
    /// Rule 2: a secret part does not depend on the host's randomness.
    #[error(
        "{} is the same in {values} values, although each call got different random bytes; get random bytes only from \
         wasi:random/random, not from the language's own generator",
        named(.place)
    )]
    Constant {
        /// The path of the part in the value; empty for the whole value.
        place: String,
        /// The number of values compared.
        values: u32,
    },
    /// Rule 5: values repeat.
    #[error(
        "{pairs} pairs of {values} values are equal, which is implausible for values with the declared \
         {declared_bits} random bits"
    )]
    Repeated {
        /// The number of values compared.
        values: u32,
        /// The number of equal pairs.
        pairs: u32,
        /// The declared random bits.
        declared_bits: u32,
    },
    /// Rule 3: the plugin draws too few random bytes.
    #[error(
        "it drew {drawn_bits} random bits for a value, but {declared_bits} are declared (entropy-bits-min)"
    )]
    TooFewDrawn {
        /// The bits drawn for a value.
        drawn_bits: u64,
        /// The declared random bits.
        declared_bits: u32,
    },
    /// Rule 1: values also depend on something other than the host's randomness.
    #[error(
        "two calls with the same random bytes returned different values, so the values also depend on something other \
         than the host's randomness"
    )]
    Unrepeatable,
    /// Rule 4: the plugin does not use the bits that it draws.
    #[error(
        "only {counting_bits} of {flipped_bits} single flipped random bits changed the value: it uses too few of the \
         {drawn_bits} bits that it draws for the {declared_bits} that it declares"
    )]
    Unused {
        /// The number of flipped bits.
        flipped_bits: u32,
        /// The number of flipped bits that changed the value.
        counting_bits: u32,
        /// The bits drawn for a value.
        drawn_bits: u64,
        /// The declared random bits.
        declared_bits: u32,
    },
}

fn named(place: &str) -> String {
    if place.is_empty() {
        "the value".to_owned()
    } else {
        format!("the field {place}")
    }
}
