//! The plugin's functions, independent of WIT.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::settings::ReferenceKeys;

/// A reference to a credential in the document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// The JSON Pointer (RFC 6901) of the `credentials` object.
    pub pointer: String,
    /// The name of the credential, without the parentheses.
    pub name: String,
}

/// The document is not a JSON object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoJsonObject;

/// Finds the references in a document, in document order.
///
/// # Errors
///
/// [`NoJsonObject`], also if other text follows the object.
pub fn find_references(
    document: &str,
    keys: &ReferenceKeys,
) -> Result<Vec<Reference>, NoJsonObject> {
    let services = parse(document).map_err(|_| NoJsonObject)?;
    Ok(services
        .iter()
        .filter_map(|(service, bindings)| Some((service, bindings.as_array()?)))
        .flat_map(|(service, bindings)| {
            bindings
                .iter()
                .enumerate()
                .filter_map(move |(index, binding)| {
                    let credentials = binding.get(CREDENTIALS)?.as_object()?;
                    Some(Reference {
                        pointer: format!("/{}/{index}/{CREDENTIALS}", escaped(service)),
                        name: without_parentheses(reference(credentials, keys)?).to_owned(),
                    })
                })
        })
        .collect())
}

fn parse(document: &str) -> Result<Map<String, Value>, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(document);
    // The host already limits the depth. Its limit is one level higher than the default of serde_json.
    deserializer.disable_recursion_limit();
    let services = Map::deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(services)
}

fn reference<'a>(credentials: &'a Map<String, Value>, keys: &ReferenceKeys) -> Option<&'a str> {
    keys.iter().find_map(|key| credentials.get(key)?.as_str())
}

/// Strips a leading `((` and a trailing `))`, independently of each other.
fn without_parentheses(reference: &str) -> &str {
    let reference = reference.strip_prefix("((").unwrap_or(reference);
    reference.strip_suffix("))").unwrap_or(reference)
}

/// Escapes one token of a JSON Pointer.
fn escaped(token: &str) -> String {
    token.replace('~', "~0").replace('/', "~1")
}

const CREDENTIALS: &str = "credentials";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(document: &Value) -> Vec<(String, String)> {
        find_references(&document.to_string(), &ReferenceKeys::default())
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

    #[test]
    fn a_document_must_be_an_object() {
        for document in ["", "[]", "null", "\"x\"", "{", "{}}"] {
            let result = find_references(document, &ReferenceKeys::default());
            assert_eq!(result, Err(NoJsonObject), "{document}");
        }
    }
}
