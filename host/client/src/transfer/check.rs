//! Validates entries by the rules of the API that every server shares.

use super::node::{Node, Reason};

/// The longest credential name, in characters, including the leading slash.
pub(crate) const NAME_CHARACTERS_MAX: usize = 255;

/// The largest value, in bytes: of the text for a string, of the JSON otherwise.
pub(crate) const VALUE_BYTES_MAX: usize = 65_536;

/// The longest metadata, in characters of JSON.
pub(crate) const METADATA_CHARACTERS_MAX: usize = 7_000;

/// Checks a name with a leading slash.
///
/// # Errors
/// The violated rule.
pub(crate) fn name(name: &str) -> Result<(), Reason> {
    if name == "/" {
        return Err(NO_NAME);
    }
    if !name.chars().all(is_name_character) {
        return Err(NAME_CHARACTER);
    }
    if name.ends_with('/') || name.contains("//") {
        return Err(NAME_SLASHES);
    }
    if name.chars().count() > NAME_CHARACTERS_MAX {
        return Err(NAME_TOO_LONG);
    }
    Ok(())
}

/// Checks the fields required by a type. Only the server can check the types of plugins.
///
/// # Errors
/// The missing or conflicting fields.
pub(crate) fn value(credential_type: &str, value: &Node) -> Result<(), Reason> {
    let has = |name| field(value, name).is_some();
    match credential_type {
        "value" | "password" if value.text().is_none_or(str::is_empty) => Err(EMPTY_TEXT),
        "json" if !matches!(value, Node::Mapping(_)) => Err(NOT_AN_OBJECT),
        "user" if !has("password") => Err(NO_PASSWORD),
        "rsa" | "ssh" if !has("public_key") && !has("private_key") => Err(NO_KEY),
        "certificate" => {
            if has("ca") && has("ca_name") {
                return Err(CA_TWICE);
            }
            let fields = ["ca", "ca_name", "certificate", "private_key"];
            if fields.into_iter().any(has) {
                Ok(())
            } else {
                Err(NO_CERTIFICATE)
            }
        }
        _ => Ok(()),
    }
}

/// Checks the size of a value.
///
/// # Errors
/// When the value is larger than [`VALUE_BYTES_MAX`].
pub(crate) fn size(value: &Node, json: &str) -> Result<(), Reason> {
    let bytes = match value {
        Node::Scalar(scalar) if scalar.is_quoted => scalar.text.len(),
        _ => json.len(),
    };
    if bytes > VALUE_BYTES_MAX {
        return Err(VALUE_TOO_LARGE);
    }
    Ok(())
}

/// Checks the length of metadata.
///
/// # Errors
/// When the metadata is longer than [`METADATA_CHARACTERS_MAX`].
pub(crate) fn metadata(json: &str) -> Result<(), Reason> {
    if json.chars().count() > METADATA_CHARACTERS_MAX {
        return Err(METADATA_TOO_LONG);
    }
    Ok(())
}

/// Returns the text of a value's field. An empty text counts as missing, as in requests.
pub(crate) fn field<'a>(value: &'a Node, name: &str) -> Option<&'a str> {
    let Node::Mapping(fields) = value else {
        return None;
    };
    let (_, node) = fields.iter().find(|(have, _)| have == name)?;
    node.text().filter(|text| !text.is_empty())
}

fn is_name_character(character: char) -> bool {
    character.is_ascii_alphanumeric() || "_-/.:()[]".contains(character)
}

const NO_NAME: Reason = "name is empty";
const NAME_CHARACTER: Reason = "name may only contain letters, digits and _ - / . : ( ) [ ]";
const NAME_SLASHES: Reason = "name must not end with a slash or contain two slashes in a row";
const NAME_TOO_LONG: Reason = "name must have at most 255 characters";
const EMPTY_TEXT: Reason = "value must be a non-empty string";
const NOT_AN_OBJECT: Reason = "value must be a mapping";
const NO_PASSWORD: Reason = "value has no password";
const NO_KEY: Reason = "value has neither public_key nor private_key";
const CA_TWICE: Reason = "value has both ca and ca_name";
const NO_CERTIFICATE: Reason = "value must have a ca, ca_name, certificate or private_key";
const VALUE_TOO_LARGE: Reason = "value must have at most 65,536 bytes";
const METADATA_TOO_LONG: Reason = "metadata must have at most 7,000 characters";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_rules_of_the_api() {
        for (candidate, result) in [
            ("/a/b_c-d.e:f(1)[2]".to_owned(), Ok(())),
            (format!("/{}", "a".repeat(NAME_CHARACTERS_MAX - 1)), Ok(())),
            (
                format!("/{}", "a".repeat(NAME_CHARACTERS_MAX)),
                Err(NAME_TOO_LONG),
            ),
            ("/".to_owned(), Err(NO_NAME)),
            ("/a/".to_owned(), Err(NAME_SLASHES)),
            ("//a".to_owned(), Err(NAME_SLASHES)),
            ("/a b".to_owned(), Err(NAME_CHARACTER)),
            ("/ä".to_owned(), Err(NAME_CHARACTER)),
            ("/a,b".to_owned(), Err(NAME_CHARACTER)),
        ] {
            assert_eq!(name(&candidate), result, "{candidate}");
        }
    }

    #[test]
    fn each_type_requires_its_fields() {
        for (credential_type, json, result) in [
            ("password", r#""x""#, Ok(())),
            ("password", r#""""#, Err(EMPTY_TEXT)),
            ("value", "{}", Err(EMPTY_TEXT)),
            ("json", "{}", Ok(())),
            ("json", "[]", Err(NOT_AN_OBJECT)),
            ("user", r#"{"username":"a"}"#, Err(NO_PASSWORD)),
            ("user", r#"{"password":""}"#, Err(NO_PASSWORD)),
            ("user", r#"{"password":"p"}"#, Ok(())),
            ("rsa", r#"{"public_key":""}"#, Err(NO_KEY)),
            ("ssh", r#"{"private_key":"k"}"#, Ok(())),
            ("certificate", r#"{"ca":""}"#, Err(NO_CERTIFICATE)),
            ("certificate", r#"{"ca":"a","ca_name":""}"#, Ok(())),
            ("certificate", r#"{"ca":"a","ca_name":"b"}"#, Err(CA_TWICE)),
            ("wireguard", "{}", Ok(())),
        ] {
            let node = Node::from_json(json).unwrap();
            assert_eq!(value(credential_type, &node), result, "{json}");
        }
    }

    #[test]
    fn values_above_64_kib_are_refused() {
        let text = |bytes: usize| Node::quoted("\"".repeat(bytes));
        for (node, result) in [
            (text(VALUE_BYTES_MAX), Ok(())),
            (text(VALUE_BYTES_MAX + 1), Err(VALUE_TOO_LARGE)),
        ] {
            assert_eq!(size(&node, &node.to_json().unwrap()), result);
        }
        let frame = r#"{"a":""}"#.len();
        for (bytes, result) in [
            (VALUE_BYTES_MAX - frame, Ok(())),
            (VALUE_BYTES_MAX - frame + 1, Err(VALUE_TOO_LARGE)),
        ] {
            let node = Node::Mapping(vec![("a".to_owned(), Node::quoted("x".repeat(bytes)))]);
            assert_eq!(size(&node, &node.to_json().unwrap()), result);
        }
    }

    #[test]
    fn metadata_above_7000_characters_is_refused() {
        assert_eq!(metadata(&"ä".repeat(METADATA_CHARACTERS_MAX)), Ok(()));
        assert_eq!(
            metadata(&"ä".repeat(METADATA_CHARACTERS_MAX + 1)),
            Err(METADATA_TOO_LONG)
        );
    }
}
