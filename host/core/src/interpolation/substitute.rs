//! Substituting parts of a JSON text. The rest stays as written: numbers keep all their digits.

use std::{collections::BTreeMap, fmt, ops::Range};

use keywright_json::{Checked, pointer::unescaped};
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

/// A pointer points to a missing part of the document, or a range is not a part of a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PointerError;

/// The JSON texts to substitute, by pointer.
#[derive(Default)]
pub(super) struct Substitutions<'a> {
    root: Node<'a>,
}

#[derive(Default)]
struct Node<'a> {
    substitute: Option<Substitute<'a>>,
    /// By the field's name, or the element's index.
    children: BTreeMap<String, Node<'a>>,
}

enum Substitute<'a> {
    /// A JSON text, for the whole part.
    Whole(&'a str),
    /// Contents of JSON strings, for ranges of a string in ascending order.
    Ranges(Vec<(Range<usize>, &'a str)>),
}

impl<'a> Substitutions<'a> {
    /// Adds a JSON text to substitute at a JSON Pointer (RFC 6901). With a range, adds the contents of a JSON string, with its
    /// escapes, to substitute in the string there. The resolver's port returns no overlapping pointers and ranges.
    pub(super) fn add(&mut self, pointer: &str, range: Option<Range<usize>>, text: &'a str) {
        let mut node = &mut self.root;
        for token in pointer.split('/').skip(1) {
            node = node.children.entry(unescaped(token)).or_default();
        }
        match (&mut node.substitute, range) {
            (Some(Substitute::Ranges(ranges)), Some(range)) => ranges.push((range, text)),
            (empty, Some(range)) => *empty = Some(Substitute::Ranges(vec![(range, text)])),
            (empty, None) => *empty = Some(Substitute::Whole(text)),
        }
    }

    /// Returns the document with all substitutions, in one pass over the document.
    ///
    /// # Errors
    /// If a pointer points to a missing part, or a range is not a part of a string.
    pub(super) fn apply(&self, document: Checked<'_>) -> Result<String, PointerError> {
        let mut output = String::with_capacity(document.text().len());
        document
            .read_seed(Substituter::new(&self.root, &mut output))
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
        match &self.node.substitute {
            Some(Substitute::Whole(text)) => {
                IgnoredAny::deserialize(deserializer)?;
                self.output.push_str(text);
            }
            Some(Substitute::Ranges(ranges)) => {
                let text = String::deserialize(deserializer)?;
                push_substituted(&text, ranges, self.output)
                    .ok_or_else(|| Error::custom("a range is not a part of the string"))?;
            }
            None if self.node.children.is_empty() => {
                let unchanged = <&RawValue>::deserialize(deserializer)?;
                self.output.push_str(unchanged.get());
            }
            None => deserializer.deserialize_any(self)?,
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
            self.output.push_str(&quoted(&key));
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

/// Adds a string with substituted ranges to JSON text. Returns `None` if a range is not a part of the text.
fn push_substituted(
    text: &str,
    ranges: &[(Range<usize>, &str)],
    output: &mut String,
) -> Option<()> {
    let mut end = 0;
    output.push('"');
    for (range, substitute) in ranges {
        text.get(range.clone())?;
        output.push_str(&escaped(text.get(end..range.start)?));
        output.push_str(substitute);
        end = range.end;
    }
    output.push_str(&escaped(text.get(end..)?));
    output.push('"');
    Some(())
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Returns a text as it is written inside a JSON string.
fn escaped(text: &str) -> String {
    let mut escaped = quoted(text);
    escaped.pop();
    escaped.remove(0);
    escaped
}
