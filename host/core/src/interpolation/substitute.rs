//! Substituting parts of a JSON text. The rest stays as written: numbers keep all their digits.

use std::{collections::BTreeMap, fmt};

use keywright_json::DEPTH_MAX;
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

/// A pointer is malformed, points to a missing part of the document, or overlaps another pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PointerError;

/// The JSON texts to substitute, by pointer.
#[derive(Default)]
pub(super) struct Substitutions<'a> {
    root: Node<'a>,
}

#[derive(Default)]
struct Node<'a> {
    substitute: Option<&'a str>,
    /// By the field's name, or the element's index.
    children: BTreeMap<String, Node<'a>>,
}

impl<'a> Substitutions<'a> {
    /// Adds a JSON text to substitute at a JSON Pointer (RFC 6901).
    ///
    /// # Errors
    /// If the pointer is malformed, has more than [`DEPTH_MAX`] segments, or overlaps another pointer.
    pub(super) fn add(&mut self, pointer: &str, text: &'a str) -> Result<(), PointerError> {
        let mut node = &mut self.root;
        let mut tokens = pointer.split('/');
        if tokens.next() != Some("") {
            return Err(PointerError);
        }
        for (depth, token) in tokens.enumerate() {
            if node.substitute.is_some() || depth == DEPTH_MAX {
                return Err(PointerError);
            }
            let token = token.replace("~1", "/").replace("~0", "~");
            node = node.children.entry(token).or_default();
        }
        if node.substitute.is_some() || !node.children.is_empty() {
            return Err(PointerError);
        }
        node.substitute = Some(text);
        Ok(())
    }

    /// Returns the document with all substitutions, in one pass over the document.
    ///
    /// # Errors
    /// If a pointer points to a missing part, or the document breaks the rules of [`keywright_json::check`].
    pub(super) fn apply(&self, document: &str) -> Result<String, PointerError> {
        let mut output = String::with_capacity(document.len());
        keywright_json::check(document)
            .and_then(|document| document.read_seed(Substituter::new(&self.root, &mut output)))
            .map_err(|_| PointerError)?;
        Ok(output)
    }
}

/// Copies a part of the document with its substitutions.
struct Substituter<'s, 'a> {
    node: &'s Node<'a>,
    output: &'s mut String,
    /// The text to write before the part, if there is a part.
    prefix: &'static str,
}

impl<'s, 'a> Substituter<'s, 'a> {
    fn new(node: &'s Node<'a>, output: &'s mut String) -> Self {
        Self {
            node,
            output,
            prefix: "",
        }
    }

    fn all_found<E: Error>(&self, found: usize) -> Result<(), E> {
        if found == self.node.children.len() {
            Ok(())
        } else {
            Err(E::custom("a pointer points to a missing part"))
        }
    }
}

impl<'de> DeserializeSeed<'de> for Substituter<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        self.output.push_str(self.prefix);
        if let Some(text) = self.node.substitute {
            IgnoredAny::deserialize(deserializer)?;
            self.output.push_str(text);
        } else if self.node.children.is_empty() {
            let unchanged = <&RawValue>::deserialize(deserializer)?;
            self.output.push_str(unchanged.get());
        } else {
            deserializer.deserialize_any(self)?;
        }
        Ok(())
    }
}

impl<'de> Visitor<'de> for Substituter<'_, '_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object or an array")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        let untouched = Node::default();
        let mut found = 0;
        let mut prefix = "";
        self.output.push('{');
        while let Some(key) = fields.next_key::<String>()? {
            self.output.push_str(prefix);
            prefix = ",";
            self.output
                .push_str(&serde_json::Value::from(key.as_str()).to_string());
            self.output.push(':');
            let node = self.node.children.get(&key);
            found += usize::from(node.is_some());
            let node = node.unwrap_or(&untouched);
            fields.next_value_seed(Substituter::new(node, self.output))?;
        }
        self.output.push('}');
        self.all_found(found)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let untouched = Node::default();
        let mut found = 0;
        self.output.push('[');
        for index in 0_usize.. {
            let node = self.node.children.get(&index.to_string());
            let substituter = Substituter {
                node: node.unwrap_or(&untouched),
                output: self.output,
                prefix: if index > 0 { "," } else { "" },
            };
            if items.next_element_seed(substituter)?.is_none() {
                break;
            }
            found += usize::from(node.is_some());
        }
        self.output.push(']');
        self.all_found(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn substituted(document: &str, pointers: &[(&str, &str)]) -> Result<String, PointerError> {
        let mut substitutions = Substitutions::default();
        for (pointer, text) in pointers {
            substitutions.add(pointer, text)?;
        }
        substitutions.apply(document)
    }

    #[test]
    fn parts_without_substitutions_stay_as_written() {
        for (document, pointers, expected) in [
            ("{}", &[][..], "{}"),
            (
                r#"{"n": 123456789012345678901234567890, "a": [1.50, {"b": 1e300}]}"#,
                &[("/a/1/b", "12345678901234567890.10")],
                r#"{"n":123456789012345678901234567890,"a":[1.50,{"b":12345678901234567890.10}]}"#,
            ),
            (
                r#"{"a/b":{"~":1,"":2}}"#,
                &[("/a~1b/~0", "[]"), ("/a~1b/", "{}")],
                r#"{"a/b":{"~":[],"":{}}}"#,
            ),
            (r#"{"\u0061":0}"#, &[("/a", "1")], r#"{"a":1}"#),
            ("[0, 1]", &[("", r#""all""#)], r#""all""#),
        ] {
            assert_eq!(
                substituted(document, pointers).as_deref(),
                Ok(expected),
                "{document}"
            );
        }
    }

    #[test]
    fn pointers_work_up_to_the_maximum_depth_of_documents() {
        let nested = |levels: usize, inner: &str| {
            format!("{}{inner}{}", "[".repeat(levels), "]".repeat(levels))
        };
        let deepest = "/0".repeat(DEPTH_MAX);
        let document = nested(DEPTH_MAX, "1");
        let expected = nested(DEPTH_MAX, "2");
        assert_eq!(substituted(&document, &[(&deepest, "2")]), Ok(expected));
        for segments in [DEPTH_MAX + 1, 1_000_000] {
            let pointer = "/0".repeat(segments);
            let refused = substituted(&document, &[(&pointer, "2")]);
            assert_eq!(refused, Err(PointerError), "{segments}");
        }
    }

    #[test]
    fn missing_and_overlapping_pointers_are_rejected() {
        for pointers in [
            &[("/b", "1")][..],
            &[("/a/2", "1")],
            &[("/a/00", "1")],
            &[("/a/-", "1")],
            &[("/a/0/x", "1")],
            &[("a", "1")],
            &[("/a", "1"), ("/a", "1")],
            &[("/a", "1"), ("/a/0", "1")],
            &[("/a/0", "1"), ("/a", "1")],
            &[("", "1"), ("/a", "1")],
        ] {
            assert_eq!(
                substituted(r#"{"a": [1, 2]}"#, pointers),
                Err(PointerError),
                "{pointers:?}"
            );
        }
    }
}
