use rand::seq::{IndexedRandom, SliceRandom};
use rand_core::CryptoRng;
use serde::{Deserialize, Serialize};

use crate::{Fields, Violation};

/// The parameters for passwords that the types `password` and `user` share.
///
/// [`PasswordRules::take`] guarantees that at least one character set is enabled and that the length is between [`LENGTH_MIN`]
/// and [`LENGTH_MAX`].
#[expect(
    clippy::struct_excessive_bools,
    reason = "the API has one flag for each character set"
)]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PasswordRules {
    /// The number of characters.
    length: u16,
    /// Whether to exclude `A-Z`.
    exclude_upper: bool,
    /// Whether to exclude `a-z`.
    exclude_lower: bool,
    /// Whether to exclude `0-9`.
    exclude_number: bool,
    /// Whether to include special characters.
    include_special: bool,
}

impl PasswordRules {
    /// Takes the rules from the caller's parameters.
    ///
    /// # Errors
    ///
    /// If the length is not from 4 to 200, or no character set is enabled.
    pub fn take(fields: &mut Fields) -> Result<Self, Violation> {
        let rules = Self {
            length: match fields.take_integer("length")? {
                None => LENGTH_DEFAULT,
                Some(length) => u16::try_from(length)
                    .ok()
                    .filter(|length| (LENGTH_MIN..=LENGTH_MAX).contains(length))
                    .ok_or_else(|| {
                        Violation::of(
                            "length",
                            format!("must be from {LENGTH_MIN} to {LENGTH_MAX}"),
                        )
                    })?,
            },
            exclude_upper: fields.take_flag("exclude_upper")?,
            exclude_lower: fields.take_flag("exclude_lower")?,
            exclude_number: fields.take_flag("exclude_number")?,
            include_special: fields.take_flag("include_special")?,
        };
        if rules.character_sets().next().is_none() {
            return Err(Violation::of_whole(
                "exclude_upper, exclude_lower and exclude_number must not all be true unless include_special is true",
            ));
        }
        Ok(rules)
    }

    /// Generates a password: at least one character of each enabled set, the others from all of them, in random order. The choices
    /// and the order are unbiased.
    pub fn generate(&self, random: &mut impl CryptoRng) -> String {
        let alphabet: Vec<u8> = self.character_sets().flatten().copied().collect();
        let mut characters: Vec<u8> = self
            .character_sets()
            .filter_map(|set| set.choose(random))
            .copied()
            .collect();
        while characters.len() < usize::from(self.length) {
            let Some(character) = alphabet.choose(random) else {
                break;
            };
            characters.push(*character);
        }
        characters.shuffle(random);
        characters.into_iter().map(char::from).collect()
    }

    fn character_sets(&self) -> impl Iterator<Item = &'static [u8]> {
        [
            (!self.exclude_upper, UPPER),
            (!self.exclude_lower, LOWER),
            (!self.exclude_number, NUMBERS),
            (self.include_special, SPECIAL),
        ]
        .into_iter()
        .filter_map(|(is_enabled, set)| is_enabled.then_some(set))
    }
}

const LENGTH_DEFAULT: u16 = 30;
const LENGTH_MIN: u16 = 4;
const LENGTH_MAX: u16 = 200;

const UPPER: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const LOWER: &[u8] = b"abcdefghijklmnopqrstuvwxyz";
const NUMBERS: &[u8] = b"0123456789";
/// ASCII punctuation without the double quote, the single quote and the plus sign.
const SPECIAL: &[u8] = br"!#$%&()*,-./:;<=>?@[\]^_`{|}~";

#[cfg(test)]
mod tests {
    use rand::{SeedableRng, rngs::ChaCha12Rng};

    use super::*;

    fn rules(text: &str) -> Result<PasswordRules, Violation> {
        PasswordRules::take(&mut Fields::parse(text)?)
    }

    fn random() -> ChaCha12Rng {
        ChaCha12Rng::seed_from_u64(7)
    }

    #[test]
    fn there_are_29_special_characters() {
        assert_eq!(SPECIAL.len(), 29);
        assert!(SPECIAL.iter().all(u8::is_ascii_punctuation));
        assert!(!SPECIAL.iter().any(|character| b"\"'+".contains(character)));
    }

    #[test]
    fn characters_are_equally_likely_at_every_position() {
        let rules = rules(r#"{"length":4,"exclude_upper":true,"exclude_lower":true}"#).unwrap();
        let mut random = random();
        let mut counts = [[0_i32; 10]; 4];
        for _ in 0..20_000 {
            for (position, digit) in rules.generate(&mut random).bytes().enumerate() {
                counts[position][usize::from(digit - b'0')] += 1;
            }
        }
        // The expected count is 2,000, with a standard deviation of 42.
        assert!(
            counts
                .iter()
                .flatten()
                .all(|count| (count - 2_000).abs() < 260),
            "{counts:?}"
        );
    }
}
