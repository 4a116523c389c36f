//! The plugin's functions, independent of WIT.

use std::ops::Range;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::settings::Settings;

/// A reference to a credential in the document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reference {
    /// The JSON Pointer (RFC 6901) of the `credentials` object, or of the string with the reference.
    pub pointer: String,
    /// The part of the string that is the reference, in bytes; `None` if the whole value is.
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
    let services = parse(document).map_err(|_| NoJsonObject)?;
    let mut finder = Finder {
        settings,
        pointer: String::new(),
        found: Vec::new(),
    };
    for (service, bindings) in &services {
        finder.at(service, |finder| match bindings {
            Value::Array(bindings) => {
                for (index, binding) in bindings.iter().enumerate() {
                    finder.at(&index.to_string(), |finder| finder.in_binding(binding));
                }
            }
            other => finder.in_value(other),
        });
    }
    Ok(finder.found)
}

struct Finder<'a> {
    settings: &'a Settings,
    /// The JSON Pointer of the current value.
    pointer: String,
    found: Vec<Reference>,
}

impl Finder<'_> {
    /// Finds the references in a child of the current value, unless the host already refuses the document.
    fn at(&mut self, key: &str, find: impl FnOnce(&mut Self)) {
        if self.is_refused() {
            return;
        }
        let parent_bytes = self.pointer.len();
        self.pointer.push('/');
        self.pointer
            .push_str(&key.replace('~', "~0").replace('/', "~1"));
        find(self);
        self.pointer.truncate(parent_bytes);
    }

    /// Returns whether the host already refuses the document.
    fn is_refused(&self) -> bool {
        let last = self.found.last();
        self.found.len() > REFERENCES_MAX
            || last.is_some_and(|last| last.pointer.len() > POINTER_BYTES_MAX)
    }

    fn in_binding(&mut self, binding: &Value) {
        let Value::Object(fields) = binding else {
            return self.in_value(binding);
        };
        for (key, value) in fields {
            self.at(key, |finder| {
                let reference = (key == CREDENTIALS)
                    .then(|| reference(value.as_object()?, finder.settings))
                    .flatten();
                match reference {
                    Some(name) => finder.found.push(Reference {
                        pointer: finder.pointer.clone(),
                        name: without_parentheses(name).to_owned(),
                        ..Reference::default()
                    }),
                    None => finder.in_value(value),
                }
            });
        }
    }

    /// Finds the references in all strings of a value, if the settings allow it.
    fn in_value(&mut self, value: &Value) {
        if !self.settings.references_in_strings {
            return;
        }
        match value {
            Value::String(text) => self.in_text(text),
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.at(&index.to_string(), |finder| finder.in_value(item));
                }
            }
            Value::Object(fields) => {
                for (key, value) in fields {
                    self.at(key, |finder| finder.in_value(value));
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
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

/// The names that the BOSH command line allows in references.
fn is_reference_character(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '-' | '_' | '/' | '.')
}

fn parse(document: &str) -> Result<Map<String, Value>, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(document);
    // The host already limits the depth. Its limit is one level higher than the default of serde_json.
    deserializer.disable_recursion_limit();
    let services = Map::deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(services)
}

fn reference<'a>(credentials: &'a Map<String, Value>, settings: &Settings) -> Option<&'a str> {
    let mut keys = settings.reference_keys.iter();
    keys.find_map(|key| credentials.get(key)?.as_str())
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
    use serde_json::json;

    use super::*;

    fn found(document: &Value) -> Vec<(String, String)> {
        find_references(&document.to_string(), &Settings::default())
            .unwrap()
            .into_iter()
            .map(|reference| (reference.pointer, reference.name))
            .collect()
    }

    #[test]
    fn references_are_found_in_document_order() {
        let document = json!({
            "z": [
                {"name": "first", "credentials": {"credhub-ref": "((/a/b))"}},
                {"name": "second", "credentials": {"user": "x"}},
                {"name": "third", "credentials": {"store-ref": "c", "sibling": true}}
            ],
            "a": [{"credentials": {"credhub_ref": "/d"}}]
        });
        let expected = [
            ("/z/0/credentials", "/a/b"),
            ("/z/2/credentials", "c"),
            ("/a/0/credentials", "/d"),
        ];
        assert_eq!(
            found(&document),
            expected.map(|(p, n)| (p.to_owned(), n.to_owned()))
        );
    }

    #[test]
    fn pointer_is_correct_for_any_service_name() {
        for service in ["a/b", "~", "~1", "", "a b", "\"", "ü/~0"] {
            let document = json!({service: [{}, {"credentials": {"store-ref": "x"}}]});
            let references = found(&document);
            let pointed = document.pointer(&references[0].0);
            assert_eq!(pointed, Some(&json!({"store-ref": "x"})), "{service}");
        }
    }

    #[test]
    fn other_shapes_are_not_references() {
        for document in [
            json!({}),
            json!({"s": {"credentials": {"store-ref": "x"}}}),
            json!({"s": "text", "t": null, "u": 5}),
            json!({"s": [["credentials"], "credentials", null]}),
            json!({"s": [{"credentials": "store-ref"}, {"credentials": [{"store-ref": "x"}]}]}),
            json!({"s": [{"credentials": {"store-ref": {"name": "x"}}}, {"store-ref": "x"}]}),
            json!({"s": [{"nested": {"credentials": {"store-ref": "x"}}}]}),
            json!({"credentials": {"store-ref": "x"}}),
        ] {
            assert_eq!(found(&document), [], "{document}");
        }
    }

    #[test]
    fn first_listed_key_with_a_string_is_used() {
        let name = |credentials: Value| {
            found(&json!({"s": [{"credentials": credentials}]}))[0]
                .1
                .clone()
        };
        assert_eq!(
            name(json!({"store-ref": "c", "credhub-ref": "b", "credhub_ref": "a"})),
            "a"
        );
        assert_eq!(name(json!({"store-ref": "c", "credhub-ref": "b"})), "b");
        assert_eq!(name(json!({"store-ref": "c", "credhub_ref": 5})), "c");
    }

    #[test]
    fn the_parentheses_on_either_side_are_optional() {
        for (reference, name) in [
            ("((/a))", "/a"),
            ("((/a", "/a"),
            ("/a))", "/a"),
            ("/a", "/a"),
            ("(/a)", "(/a)"),
            ("(((/a)))", "(/a)"),
            ("((", ""),
            (" ((/a)) ", " ((/a)) "),
        ] {
            let document = json!({"s": [{"credentials": {"store-ref": reference}}]});
            assert_eq!(found(&document)[0].1, name, "{reference}");
        }
    }

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
    fn strings_are_searched_everywhere_except_in_replaced_credentials() {
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
