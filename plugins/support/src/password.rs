use rand::seq::{IndexedRandom, SliceRandom};
use rand_core::CryptoRng;
use serde::{Deserialize, Serialize};

use crate::{Members, Violation};

/// What a generated password must look like: the parameters that `password` and `user` have in common.
///
/// At least one character set is enabled, and the length is within [`LENGTH_MIN`] and [`LENGTH_MAX`], when it came from
/// [`PasswordRules::take`].
#[expect(
    clippy::struct_excessive_bools,
    reason = "the API has one flag for each character set"
)]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PasswordRules {
    /// The number of characters.
    length: u16,
    /// Whether `A-Z` is left out.
    exclude_upper: bool,
    /// Whether `a-z` is left out.
    exclude_lower: bool,
    /// Whether `0-9` is left out.
    exclude_number: bool,
    /// Whether the special characters are in.
    include_special: bool,
}

impl PasswordRules {
    /// Takes the parameters out of what the caller sent.
    ///
    /// # Errors
    ///
    /// The rule that they break: a length of 4 to 200, and at least one character set.
    pub fn take(members: &mut Members) -> Result<Self, Violation> {
        let rules = Self {
            length: match members.take_integer("length")? {
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
            exclude_upper: members.take_flag("exclude_upper")?,
            exclude_lower: members.take_flag("exclude_lower")?,
            exclude_number: members.take_flag("exclude_number")?,
            include_special: members.take_flag("include_special")?,
        };
        if rules.character_sets().next().is_none() {
            return Err(Violation::of_whole(
                "exclude_upper, exclude_lower and exclude_number leave no character without include_special",
            ));
        }
        Ok(rules)
    }

    /// Makes a password: one character of each enabled set, the others from all of them, in random order.
    ///
    /// Each choice, and the order, is free of bias.
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
/// The punctuation of ASCII without the double quote, the single quote and the plus sign.
const SPECIAL: &[u8] = br"!#$%&()*,-./:;<=>?@[\]^_`{|}~";

#[cfg(test)]
mod tests {
    use rand::{SeedableRng, rngs::ChaCha12Rng};

    use super::*;

    fn rules(text: &str) -> Result<PasswordRules, Violation> {
        PasswordRules::take(&mut Members::parse(text)?)
    }

    fn random() -> ChaCha12Rng {
        ChaCha12Rng::seed_from_u64(7)
    }

    #[test]
    fn the_special_characters_are_the_29_of_the_api() {
        assert_eq!(SPECIAL.len(), 29);
        assert!(SPECIAL.iter().all(u8::is_ascii_punctuation));
        assert!(!SPECIAL.iter().any(|character| b"\"'+".contains(character)));
    }

    #[test]
    fn without_parameters_a_password_has_30_letters_and_digits() {
        let password = rules("{}").unwrap().generate(&mut random());
        assert_eq!(password.len(), 30);
        assert!(
            password
                .bytes()
                .all(|character| character.is_ascii_alphanumeric())
        );
    }

    #[test]
    fn every_enabled_set_is_in_every_password_and_no_other() {
        for flags in 0..16_u8 {
            let [upper, lower, number, special] = [1, 2, 4, 8].map(|bit| flags & bit != 0);
            let parsed = rules(&format!(
                r#"{{"length":4,"exclude_upper":{},"exclude_lower":{},"exclude_number":{},"include_special":{special}}}"#,
                !upper, !lower, !number
            ));
            if flags == 0 {
                assert_eq!(parsed.unwrap_err().member, None);
                continue;
            }
            let parsed = parsed.unwrap();
            let mut random = random();
            for _ in 0..500 {
                let password = parsed.generate(&mut random);
                assert_eq!(password.len(), 4);
                for (is_enabled, set) in [
                    (upper, UPPER),
                    (lower, LOWER),
                    (number, NUMBERS),
                    (special, SPECIAL),
                ] {
                    assert_eq!(password.bytes().any(|c| set.contains(&c)), is_enabled);
                }
            }
        }
    }

    #[test]
    fn lengths_outside_4_to_200_are_refused() {
        for length in ["3", "201", "0", "-1", "65540", "9223372036854775807"] {
            let violation = rules(&format!(r#"{{"length":{length}}}"#)).unwrap_err();
            assert_eq!(
                violation,
                Violation::of("length", "must be from 4 to 200"),
                "{length}"
            );
        }
        for length in [4, 200] {
            let password = rules(&format!(r#"{{"length":{length}}}"#))
                .unwrap()
                .generate(&mut random());
            assert_eq!(password.len(), length);
        }
    }

    #[test]
    fn every_character_is_as_likely_at_every_place() {
        let rules = rules(r#"{"length":4,"exclude_upper":true,"exclude_lower":true}"#).unwrap();
        let mut random = random();
        let mut counts = [[0_i32; 10]; 4];
        for _ in 0..20_000 {
            for (place, digit) in rules.generate(&mut random).bytes().enumerate() {
                counts[place][usize::from(digit - b'0')] += 1;
            }
        }
        // 2,000 are expected of each, with a standard deviation of 42.
        assert!(
            counts
                .iter()
                .flatten()
                .all(|count| (count - 2_000).abs() < 260),
            "{counts:?}"
        );
    }

    #[test]
    fn no_two_passwords_are_alike() {
        let mut random = random();
        let rules = rules("{}").unwrap();
        let passwords: std::collections::HashSet<_> =
            (0..10_000).map(|_| rules.generate(&mut random)).collect();
        assert_eq!(passwords.len(), 10_000);
    }
}
