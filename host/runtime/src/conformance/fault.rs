//! The rules of entropy conformance that a generator can break, in words.

use serde::{Deserialize, Serialize};

/// A rule of entropy conformance that a generator does not keep. The words complete the sentence "its values are not as
/// random as they must be: …".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case", tag = "rule")]
pub enum EntropyFault {
    /// Rule 5: the characters of many values are not as different as they must be.
    #[error(
        "by how often each character stands at each place in {values} of them, they can't hold more than {held_bits} \
         random bits, where {declared_bits} are declared; {fixed_places} places hold the same character in all"
    )]
    Biased {
        /// How many values were compared.
        values: u32,
        /// How many random bits they can hold at the most.
        held_bits: u32,
        /// How many are declared.
        declared_bits: u32,
        /// How many places hold the same character in every value.
        fixed_places: u32,
    },
    /// Rule 2: a secret part does not depend on the host's randomness.
    #[error(
        "{} is the same in {values} of them, each made of other random bytes, so it does not come of the host's \
         randomness; draw it from wasi:random/random, and from nothing that the language brings along",
        named(.place)
    )]
    Constant {
        /// Where in the value it is; empty for the value as a whole.
        place: String,
        /// How many values were compared.
        values: u32,
    },
    /// Rule 5: values come again.
    #[error(
        "of {values}, {pairs} pairs are alike, which does not happen by chance where {declared_bits} random bits go into \
         each, as declared"
    )]
    Repeated {
        /// How many values were compared.
        values: u32,
        /// How many pairs of them are alike.
        pairs: u32,
        /// How many bits are declared.
        declared_bits: u32,
    },
    /// Rule 3: too few random bytes are drawn.
    #[error(
        "{drawn_bits} random bits were drawn for one of them, but {declared_bits} are declared (entropy-bits-min)"
    )]
    TooFewDrawn {
        /// How many bits were drawn for a value.
        drawn_bits: u64,
        /// How many are declared.
        declared_bits: u32,
    },
    /// Rule 1: something else than the host's randomness goes into it.
    #[error(
        "the same random bytes gave another one the second time, so something else than the host's randomness goes into \
         them"
    )]
    Unrepeatable,
    /// Rule 4: what is drawn is thrown away.
    #[error(
        "of {flipped_bits} random bits that were flipped, one in each call, {counting_bits} gave another one: of the \
         {drawn_bits} bits that are drawn too few are used for the {declared_bits} that are declared"
    )]
    Unused {
        /// How many bits were flipped.
        flipped_bits: u32,
        /// How many of them gave another value.
        counting_bits: u32,
        /// How many are drawn for a value.
        drawn_bits: u64,
        /// How many are declared.
        declared_bits: u32,
    },
}

fn named(place: &str) -> String {
    if place.is_empty() {
        "the value".to_owned()
    } else {
        format!("the member {place}")
    }
}
