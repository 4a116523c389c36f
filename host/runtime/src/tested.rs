//! Components whose randomness was tested when a release was built.

use std::{collections::BTreeSet, fmt};

use crate::conformance::RULES_VERSION;

/// The digests of components that have passed the entropy test without settings. A server does not test these again.
///
/// As text: the version of the rules, and the digests in alphabetical order, separated by spaces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TestedComponents(BTreeSet<String>);

impl TestedComponents {
    /// Reads a list. One of another version of the rules is empty: its components must be tested again.
    #[must_use]
    pub fn parse(list: &str) -> Self {
        let mut words = list.split_ascii_whitespace();
        if words.next() != Some(&RULES_VERSION.to_string()) {
            return Self::default();
        }
        Self(words.map(str::to_owned).collect())
    }

    /// Adds the digest of a component.
    pub fn insert(&mut self, digest: String) {
        self.0.insert(digest);
    }

    /// Whether a component with this digest has passed the test.
    #[must_use]
    pub fn contains(&self, digest: &str) -> bool {
        self.0.contains(digest)
    }

    /// Whether a component with this digest has passed the test with these settings.
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

/// The settings of a component whose configuration has none, as JSON text.
const NO_SETTINGS: &str = "{}";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_as_it_was_written_unless_the_rules_have_changed() {
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

    #[test]
    fn a_component_with_settings_was_not_tested() {
        let tested = TestedComponents::parse(&format!("{RULES_VERSION} a"));
        assert!(tested.contains_with("a", "{}"));
        assert!(!tested.contains_with("a", r#"{"b":1}"#));
        assert!(!tested.contains_with("b", "{}"));
    }
}
