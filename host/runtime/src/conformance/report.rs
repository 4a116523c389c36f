//! The result of an entropy test: its report, the violated rules with their messages, and the list of components that have
//! passed.

use std::{collections::BTreeSet, fmt};

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

/// The digests of components that passed the entropy test without settings when a release was built. A server does not test
/// these again.
///
/// As text: the version of the rules, and the digests in alphabetical order, separated by spaces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TestedComponents(BTreeSet<String>);

impl TestedComponents {
    /// Parses a list. Returns an empty list if the version of the rules differs: all components must be tested again.
    pub fn parse(list: &str) -> Self {
        let mut fields = list.split_ascii_whitespace();
        if fields.next() != Some(&RULES_VERSION.to_string()) {
            return Self::default();
        }
        Self(fields.map(str::to_owned).collect())
    }

    /// Adds the digest of a component.
    pub fn insert(&mut self, digest: String) {
        self.0.insert(digest);
    }

    /// Returns whether a component with this digest has passed the test.
    pub fn contains(&self, digest: &str) -> bool {
        self.0.contains(digest)
    }

    /// Returns whether a component with this digest has passed the test with these settings.
    pub(crate) fn contains_with(&self, digest: &str, settings: &str) -> bool {
        settings == NO_SETTINGS && self.contains(digest)
    }
}

impl fmt::Display for TestedComponents {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{RULES_VERSION}")?;
        self.0
            .iter()
            .try_for_each(|digest| write!(formatter, " {digest}"))
    }
}

/// The settings of a component without configured settings, as JSON text.
const NO_SETTINGS: &str = "{}";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_as_written_unless_the_rules_have_changed() {
        let mut tested = TestedComponents::default();
        tested.insert("b".to_owned());
        tested.insert("a".to_owned());
        let text = tested.to_string();
        assert_eq!(text, format!("{RULES_VERSION} a b"));
        assert_eq!(TestedComponents::parse(&text), tested);
        for list in ["", "a b", &format!("{} a b", RULES_VERSION + 1)] {
            assert_eq!(
                TestedComponents::parse(list),
                TestedComponents::default(),
                "{list}"
            );
        }
    }
}
