//! Generates passphrases: random words from a list.
//!
//! The list, `words.txt`, is the EFF's "long" list for random passphrases, by Joseph Bonneau (Electronic Frontier Foundation,
//! 2016, <https://www.eff.org/dice>), under the licence Creative Commons Attribution 3.0 United States
//! (<https://creativecommons.org/licenses/by/3.0/us/>). The dice numbers were removed; the words and their order are unchanged.
//!
//! A passphrase that was set can't be regenerated, so the plugin has no `recoverer`.

use keywright_plugin_support::{Failure, Fields, Generator, Violation, filled_text};
use rand::seq::IndexedRandom;
use rand_core::CryptoRng;
use serde::{Deserialize, Serialize};

/// The minimum number of random bits in a passphrase with default parameters: six words from a list of 7,776, with 12.925 bits
/// each.
pub const ENTROPY_BITS_MIN: u32 = 77;

#[cfg(target_arch = "wasm32")]
keywright_plugin_support::generator_component! {
    generator: Passphrase,
    credential_type: "passphrase",
    summary: "Random words from a list",
    entropy_bits_min: ENTROPY_BITS_MIN,
}

/// The canonical parameters of a passphrase.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Parameters {
    words: usize,
    /// The separator between words.
    separator: String,
    /// Whether each word starts with a capital letter.
    capitalize: bool,
    /// Whether a digit follows one of the words.
    include_number: bool,
}

/// Generates passphrases.
///
/// All words are equally likely at every position: random numbers that do not divide evenly among the words are discarded. No word
/// is a prefix of another, so different choices result in different passphrases, even without a separator.
pub struct Passphrase;

impl Generator for Passphrase {
    type Parameters = Parameters;
    type Value = String;

    fn take(fields: &mut Fields) -> Result<Parameters, Violation> {
        Ok(Parameters {
            words: words(fields)?,
            separator: separator(fields)?,
            capitalize: fields.take_flag("capitalize")?,
            include_number: fields.take_flag("include_number")?,
        })
    }

    fn make(parameters: Parameters, random: &mut impl CryptoRng) -> Result<String, Failure> {
        let list: Vec<&str> = WORDS.lines().collect();
        let mut words: Vec<String> = (0..parameters.words)
            .filter_map(|_| list.choose(random))
            .map(|word| {
                if parameters.capitalize {
                    capitalized(word)
                } else {
                    (*word).to_owned()
                }
            })
            .collect();
        if parameters.include_number {
            let indexes: Vec<usize> = (0..words.len()).collect();
            let index = indexes.choose(random).copied();
            let word = index.and_then(|index| words.get_mut(index));
            if let (Some(word), Some(digit)) = (word, DIGITS.choose(random)) {
                word.push(char::from(*digit));
            }
        }
        Ok(words.join(&parameters.separator))
    }

    fn check(value: &str, _random: &mut impl CryptoRng) -> Result<String, Failure> {
        filled_text(value)
    }
}

fn words(fields: &mut Fields) -> Result<usize, Violation> {
    let Some(count) = fields.take_integer("words")? else {
        return Ok(WORDS_DEFAULT);
    };
    usize::try_from(count)
        .ok()
        .filter(|count| (WORDS_MIN..=WORDS_MAX).contains(count))
        .ok_or_else(|| Violation::of("words", format!("must be from {WORDS_MIN} to {WORDS_MAX}")))
}

fn separator(fields: &mut Fields) -> Result<String, Violation> {
    let Some(separator) = fields.take_text("separator")? else {
        return Ok(SEPARATOR_DEFAULT.to_owned());
    };
    let is_printable = |byte: u8| byte == b' ' || byte.is_ascii_graphic();
    if separator.len() > SEPARATOR_CHARACTERS_MAX || !separator.bytes().all(is_printable) {
        let rule = format!(
            "must have at most {SEPARATOR_CHARACTERS_MAX} characters, all of them printable ASCII"
        );
        return Err(Violation::of("separator", rule));
    }
    Ok(separator)
}

fn capitalized(word: &str) -> String {
    let mut characters = word.chars();
    let first = characters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(characters).collect()
}

/// The list, one word per line.
const WORDS: &str = include_str!("words.txt");
const DIGITS: &[u8] = b"0123456789";

const WORDS_DEFAULT: usize = 6;
/// Four words have 51.7 bits of entropy.
const WORDS_MIN: usize = 4;
const WORDS_MAX: usize = 40;
const SEPARATOR_DEFAULT: &str = "-";
const SEPARATOR_CHARACTERS_MAX: usize = 8;

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use rand::{SeedableRng, rngs::ChaCha12Rng};
    use serde_json::{Value, json};

    use super::*;

    fn matches(schema: &str, instance: &str) -> bool {
        let schema: Value = serde_json::from_str(schema).unwrap();
        jsonschema::draft202012::new(&schema)
            .unwrap()
            .is_valid(&serde_json::from_str(instance).unwrap())
    }

    fn generated(parameters: &Value, random: &mut ChaCha12Rng) -> String {
        let parameters = Passphrase::normalize(&parameters.to_string(), "{}").unwrap();
        let passphrase = Passphrase::generate(&parameters, "{}", random).unwrap();
        assert!(matches(include_str!("value.schema.json"), &passphrase));
        serde_json::from_str(&passphrase).unwrap()
    }

    fn random() -> ChaCha12Rng {
        ChaCha12Rng::seed_from_u64(7)
    }

    #[test]
    fn list_is_complete_and_no_word_is_a_prefix_of_another() {
        let mut words: Vec<&str> = WORDS.lines().collect();
        assert_eq!(words.len(), 6_usize.pow(5));
        words.sort_unstable();
        for pair in words.windows(2) {
            assert!(!pair[1].starts_with(pair[0]), "{pair:?}");
        }
        let mut characters = WORDS.bytes().filter(|byte| *byte != b'\n');
        assert!(characters.all(|byte| byte.is_ascii_lowercase() || byte == b'-'));
    }

    #[test]
    fn declared_entropy_matches_six_words() {
        let bits = f64::from(7_776).log2() * 6.0;
        assert!(f64::from(ENTROPY_BITS_MIN) <= bits && bits < f64::from(ENTROPY_BITS_MIN + 1));
    }

    #[test]
    fn passphrase_has_the_requested_words_and_separators() {
        let list: HashSet<&str> = WORDS.lines().collect();
        let random = &mut random();
        for (words, separator) in [(4, " "), (40, "--.--")] {
            let passphrase = generated(&json!({"words": words, "separator": separator}), random);
            let parts: Vec<&str> = passphrase.split(separator).collect();
            assert_eq!(parts.len(), words);
            assert!(parts.iter().all(|part| list.contains(part)), "{passphrase}");
        }
    }

    #[test]
    fn words_are_capitalized_and_one_ends_with_a_digit() {
        let parameters = json!({"separator": "_", "capitalize": true, "include_number": true});
        let random = &mut random();
        let mut positions = HashSet::new();
        for _ in 0..200 {
            let passphrase = generated(&parameters, random);
            let words: Vec<&str> = passphrase.split('_').collect();
            assert_eq!(words.len(), 6);
            let first = |word: &&str| word.starts_with(|c: char| c.is_ascii_uppercase());
            assert!(words.iter().all(first), "{passphrase}");
            let digits = |word: &&str| word.bytes().filter(u8::is_ascii_digit).count();
            assert_eq!(words.iter().map(digits).sum::<usize>(), 1, "{passphrase}");
            let with_digit = |word: &&str| word.ends_with(|c: char| c.is_ascii_digit());
            positions.insert(words.iter().position(with_digit).unwrap());
        }
        assert_eq!(positions.len(), 6);
    }

    #[test]
    fn words_are_equally_likely_at_every_position() {
        let random = &mut random();
        let mut counts = vec![HashMap::<String, u32>::new(); 40];
        let parameters = json!({"words": 40, "separator": " "});
        for _ in 0..2_000 {
            for (position, word) in generated(&parameters, random).split(' ').enumerate() {
                let first = word.split_at(1).0.to_owned();
                *counts[position].entry(first).or_default() += 1;
            }
        }
        // Words are counted by first letter. Each letter has its share of the list; s has the largest.
        let share = |letter: &str| {
            let words = WORDS.lines().filter(|word| word.starts_with(letter));
            f64::from(u32::try_from(words.count()).unwrap()) / 7_776.0
        };
        for letter in ["a", "c", "s", "u"] {
            let share = share(letter);
            let deviation = (2_000.0 * share * (1.0 - share)).sqrt();
            for position in &counts {
                let count = f64::from(position[letter]);
                assert!(
                    (count - 2_000.0 * share).abs() < 6.0 * deviation,
                    "{letter} {count}"
                );
            }
        }
    }
}
