//! The plugin's functions, independent of WIT.

use std::{fmt, ops::Range};

use serde::{
    Deserializer,
    de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

use crate::settings::Settings;

/// A reference to a credential in the document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reference {
    /// The JSON Pointer (RFC 6901) of the `credentials` object, or of the string with the reference.
    pub pointer: String,
    /// The part of the string that is the reference, in bytes; `None` if the whole value is the reference.
    pub range: Option<Range<usize>>,
    /// The name of the credential, without the parentheses.
    pub name: String,
    /// The keys that lead to the referenced part of the credential's value.
    pub fields: Vec<String>,
    /// Whether the credential may have a type other than json.
    pub is_any_type: bool,
}

/// The document is not a JSON object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoJsonObject;

/// Finds the references in a document, in document order. Stops at the first reference beyond the limits of the host, which
/// refuses the document.
///
/// # Errors
///
/// [`NoJsonObject`], also if other text follows the object.
pub fn find_references(
    document: &str,
    settings: &Settings,
) -> Result<Vec<Reference>, NoJsonObject> {
    let mut finder = Finder {
        settings,
        pointer: String::new(),
        found: Vec::new(),
    };
    let document_part = finder.in_part(Part::Document);
    read(document, |json| json.deserialize_map(document_part)).map_err(|_| NoJsonObject)?;
    Ok(finder.found)
}

struct Finder<'a> {
    settings: &'a Settings,
    /// The JSON Pointer of the current value.
    pointer: String,
    found: Vec<Reference>,
}

impl<'a> Finder<'a> {
    fn in_part(&mut self, part: Part) -> PartFinder<'_, 'a> {
        PartFinder { finder: self, part }
    }

    /// Adds a key to the pointer, and returns the length of the pointer before.
    fn enter(&mut self, key: &str) -> usize {
        let parent_bytes = self.pointer.len();
        self.pointer.push('/');
        self.pointer
            .push_str(&key.replace('~', "~0").replace('/', "~1"));
        parent_bytes
    }

    /// Returns whether the references found so far exceed the limits of the host.
    fn is_refused(&self) -> bool {
        let last = self.found.last();
        self.found.len() > REFERENCES_MAX
            || last.is_some_and(|last| last.pointer.len() > POINTER_BYTES_MAX)
    }

    fn in_credentials(&mut self, credentials: &str) -> Result<(), serde_json::Error> {
        // Credentials that are not an object contain no reference.
        let name = read(credentials, |json| {
            json.deserialize_map(Named(self.settings))
        });
        match name.ok().flatten() {
            Some(name) => self.found.push(Reference {
                pointer: self.pointer.clone(),
                name: without_parentheses(&name).to_owned(),
                ..Reference::default()
            }),
            None => read(credentials, |json| {
                self.in_part(Part::Other).deserialize(json)
            })?,
        }
        Ok(())
    }

    fn in_text(&mut self, text: &str) {
        let mut from = 0;
        while let Some(range) = next_in_parentheses(text, from) {
            from = range.end;
            let reference = text.get(range.start + 2..range.end - 2).unwrap_or_default();
            let reference = reference.strip_prefix('!').unwrap_or(reference);
            let mut keys = reference.split('.').map(str::to_owned);
            self.found.push(Reference {
                pointer: self.pointer.clone(),
                range: (range != (0..text.len())).then_some(range),
                name: keys.next().unwrap_or_default(),
                fields: keys.collect(),
                is_any_type: true,
            });
            if self.is_refused() {
                return;
            }
        }
    }
}

/// Returns the first `((name))` that starts at or after a byte of a text.
fn next_in_parentheses(text: &str, from: usize) -> Option<Range<usize>> {
    let starts = text.get(from..)?.char_indices();
    starts.map(|(at, _)| from + at).find_map(|start| {
        let inner = text.get(start..)?.strip_prefix("((")?;
        let name = inner.strip_prefix('!').unwrap_or(inner);
        let rest = name.trim_start_matches(is_reference_character);
        let is_reference = rest.len() < name.len() && rest.starts_with("))");
        is_reference.then(|| start..text.len() - rest.len() + 2)
    })
}

/// Returns whether the BOSH command line allows a character in the names of references.
fn is_reference_character(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '-' | '_' | '/' | '.')
}

/// A part of a document. It determines which references are found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Document,
    /// A field of the document.
    Service,
    /// An item of a service.
    Binding,
    /// Anything else: references are found only in strings, if the settings allow it.
    Other,
}

/// Finds the references in a part while it is parsed. Keeps none of it: a parsed document can take a hundred times the memory of
/// its text.
struct PartFinder<'f, 'a> {
    finder: &'f mut Finder<'a>,
    part: Part,
}

impl<'de> DeserializeSeed<'de> for PartFinder<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        let has_no_references =
            self.part == Part::Other && !self.finder.settings.references_in_strings;
        if has_no_references || self.finder.is_refused() {
            return json.deserialize_ignored_any(IgnoredAny).map(|_| ());
        }
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for PartFinder<'_, '_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        let Self { finder, part } = self;
        let of_fields = match part {
            Part::Document => Part::Service,
            Part::Service | Part::Binding | Part::Other => Part::Other,
        };
        while let Some(key) = fields.next_key::<String>()? {
            let parent_bytes = finder.enter(&key);
            if part == Part::Binding && key == CREDENTIALS && !finder.is_refused() {
                let credentials: &RawValue = fields.next_value()?;
                finder
                    .in_credentials(credentials.get())
                    .map_err(Error::custom)?;
            } else {
                fields.next_value_seed(finder.in_part(of_fields))?;
            }
            finder.pointer.truncate(parent_bytes);
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let Self { finder, part } = self;
        let of_items = match part {
            Part::Service => Part::Binding,
            Part::Document | Part::Binding | Part::Other => Part::Other,
        };
        for index in 0_usize.. {
            let parent_bytes = finder.enter(&index.to_string());
            let item = items.next_element_seed(finder.in_part(of_items))?;
            finder.pointer.truncate(parent_bytes);
            if item.is_none() {
                break;
            }
        }
        Ok(())
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        if self.finder.settings.references_in_strings {
            self.finder.in_text(text);
        }
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

/// Reads the reference in a `credentials` object: the first of the keys in the settings whose value is a string.
struct Named<'a>(&'a Settings);

impl<'de> Visitor<'de> for Named<'_> {
    type Value = Option<String>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Option<String>, A::Error> {
        let mut first: Option<(usize, String)> = None;
        while let Some((key, value)) = fields.next_entry::<String, &RawValue>()? {
            let position = self.0.reference_keys.iter().position(|known| *known == key);
            let position = position
                .filter(|position| first.as_ref().is_none_or(|(first, _)| position < first));
            if let Some(position) = position
                && let Ok(name) = serde_json::from_str(value.get())
            {
                first = Some((position, name));
            }
        }
        Ok(first.map(|(_, name)| name))
    }
}

/// Parses a JSON text, after which no other text may follow.
fn read<'de, T>(
    text: &'de str,
    parse: impl FnOnce(
        &mut serde_json::Deserializer<serde_json::de::StrRead<'de>>,
    ) -> Result<T, serde_json::Error>,
) -> Result<T, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    // The host already limits the depth. Its limit is one level higher than the default of serde_json.
    deserializer.disable_recursion_limit();
    let parsed = parse(&mut deserializer)?;
    deserializer.end()?;
    Ok(parsed)
}

/// Strips a leading `((` and a trailing `))`, independently of each other.
fn without_parentheses(reference: &str) -> &str {
    let reference = reference.strip_prefix("((").unwrap_or(reference);
    reference.strip_suffix("))").unwrap_or(reference)
}

const CREDENTIALS: &str = "credentials";

/// The maximum number of references that the host allows in a document.
const REFERENCES_MAX: usize = 1_000;
/// The maximum length of a reference's pointer that the host allows, in bytes.
const POINTER_BYTES_MAX: usize = 8 * 1_024;

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Returns the references in the string `a`, each as its text, name and fields, and whether it is the whole string.
    fn in_string(text: &str) -> Vec<(String, String, Vec<String>, bool)> {
        let settings = Settings {
            references_in_strings: true,
            ..Settings::default()
        };
        let found = find_references(&json!({"a": text}).to_string(), &settings).unwrap();
        let described = found.into_iter().map(|found| {
            assert!(found.is_any_type && found.pointer == "/a", "{found:?}");
            let range = found.range.clone().unwrap_or(0..text.len());
            let whole = found.range.is_none();
            (text[range].to_owned(), found.name, found.fields, whole)
        });
        described.collect()
    }

    #[test]
    fn references_in_strings_have_the_syntax_of_bosh() {
        for (text, expected) in [
            ("((a))", &[("((a))", "a", &[][..], true)][..]),
            ("((!/a/b-c_1))", &[("((!/a/b-c_1))", "/a/b-c_1", &[], true)]),
            (
                "((/db.username))",
                &[("((/db.username))", "/db", &["username"], true)],
            ),
            ("((a.b.c))", &[("((a.b.c))", "a", &["b", "c"], true)]),
            ("((a.))", &[("((a.))", "a", &[""], true)]),
            ("((ä))", &[("((ä))", "ä", &[], true)]),
            (
                "ü((a)):((b.c))!",
                &[("((a))", "a", &[], false), ("((b.c))", "b", &["c"], false)],
            ),
            (
                "((a))((a))",
                &[("((a))", "a", &[], false), ("((a))", "a", &[], false)],
            ),
            ("(((a)))", &[("((a))", "a", &[], false)]),
            ("((a ((b))", &[("((b))", "b", &[], false)]),
            (" ((a))", &[("((a))", "a", &[], false)]),
        ] {
            let expected: Vec<_> = expected
                .iter()
                .map(|(text, name, fields, whole)| {
                    let fields = fields.iter().map(|&field| field.to_owned()).collect();
                    ((*text).to_owned(), (*name).to_owned(), fields, *whole)
                })
                .collect();
            assert_eq!(in_string(text), expected, "{text}");
        }
        for text in [
            "", "((", "(())", "((!))", "((a b))", "((a)", "(a))", "(( a))", "((a:b))", "((!!a))",
        ] {
            assert_eq!(in_string(text), [], "{text}");
        }
    }

    #[test]
    fn strings_are_searched_except_in_replaced_credentials() {
        let settings = Settings {
            references_in_strings: true,
            ..Settings::default()
        };
        let document = json!({
            "((key))": "((a))",
            "s": [
                {"x": ["((b))", {"y/~": "((c))"}], "credentials": {"store-ref": "((d.e))", "z": "((f))"}, "w": "((g))"},
                {"credentials": {"password": "((h))"}},
                "((i))"
            ],
        });
        let found = find_references(&document.to_string(), &settings).unwrap();
        let found: Vec<_> = found
            .iter()
            .map(|found| {
                (
                    found.pointer.as_str(),
                    found.name.as_str(),
                    found.is_any_type,
                )
            })
            .collect();
        let expected = [
            ("/((key))", "a", true),
            ("/s/0/x/0", "b", true),
            ("/s/0/x/1/y~1~0", "c", true),
            ("/s/0/credentials", "d.e", false),
            ("/s/0/w", "g", true),
            ("/s/1/credentials/password", "h", true),
            ("/s/2", "i", true),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn the_search_stops_after_the_first_reference_beyond_the_limits() {
        let settings = Settings {
            references_in_strings: true,
            ..Settings::default()
        };
        let count = |document: &Value| {
            let found = find_references(&document.to_string(), &settings);
            found.unwrap().len()
        };
        assert_eq!(count(&json!({"a": "((a))".repeat(1_000)})), 1_000);
        assert_eq!(count(&json!({"a": "((a))".repeat(5_000)})), 1_001);
        assert_eq!(count(&json!({"a": vec!["((a))"; 5_000]})), 1_001);
        let key = |pointer_bytes: usize| "k".repeat(pointer_bytes - "/".len());
        for (pointer_bytes, expected) in [(POINTER_BYTES_MAX, 2), (POINTER_BYTES_MAX + 1, 1)] {
            assert_eq!(count(&json!({key(pointer_bytes): "((a))((a))"})), expected);
            let list = json!({key(pointer_bytes - "/0".len()): ["((a))", "((a))"]});
            assert_eq!(count(&list), expected);
        }
    }

    #[test]
    fn a_document_must_be_an_object() {
        for document in ["", "[]", "null", "\"x\"", "{", "{}}"] {
            let result = find_references(document, &Settings::default());
            assert_eq!(result, Err(NoJsonObject), "{document}");
        }
    }
}
