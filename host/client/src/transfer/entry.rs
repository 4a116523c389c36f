//! Entries of an export file, and the rules of the API that every server shares for them.

use std::{collections::HashMap, fmt};

use clap::ValueEnum;
use keywright_json::shown_key;

use super::node::{Node, Reason};
use crate::{SecretJson, SetCredential};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// JSON object with a field `credentials`.
    Json,
    /// YAML mapping with a key `credentials`.
    #[default]
    Yaml,
}

/// A credential of a file, ready to be set.
#[derive(Clone)]
pub(crate) struct Entry {
    pub(crate) position: Position,
    /// The request to set the credential. Its name has a leading slash, and its type is in lower case.
    pub(crate) credential: SetCredential,
    /// The name of the CA that must be set before, with a leading slash: a certificate's signing CA, or the CA in the parameters.
    pub(crate) ca_name: Option<String>,
}

/// The position of an entry in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    /// The number of the entry, from 1.
    pub(crate) entry: usize,
    /// The first line of the entry, from 1, if known.
    pub(crate) line: Option<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EntryError {
    pub(crate) position: Position,
    /// The name, if known.
    pub(crate) name: Option<String>,
    /// The reason, without content of the entry.
    pub(crate) reason: String,
}

impl Entry {
    /// Parses an entry and checks it as far as possible without a server.
    pub(crate) fn of(position: Position, node: Node) -> Result<Self, EntryError> {
        let mut name = None;
        let entry = Self::read(position, node, &mut name);
        entry.map_err(|reason| EntryError {
            position,
            name,
            reason,
        })
    }

    /// Parses an entry, and stores its name as soon as it is known.
    fn read(position: Position, node: Node, name: &mut Option<String>) -> Result<Self, String> {
        let Node::Mapping(fields) = node else {
            return Err("entry must be a mapping with name, type and value".to_owned());
        };
        let mut fields: HashMap<_, _> = fields.into_iter().collect();
        let text = |field| fields.get(field).and_then(Node::text);
        *name = text("name").map(with_leading_slash);
        let unknown = fields
            .keys()
            .filter(|field| !FIELDS.contains(&field.as_str()));
        if let Some(field) = unknown.min() {
            return Err(format!(
                "unknown field {}; allowed fields are name, type, value, metadata, generated_by and parameters",
                shown_key(field)
            ));
        }
        for field in ["name", "type"] {
            let node = fields.get(field);
            if node.is_some_and(|node| node.text().is_none() && !node.is_null()) {
                return Err(format!("{field} must be a string"));
            }
        }
        let full_name = name.clone().ok_or("missing name")?;
        check_name(&full_name)?;
        let credential_type = text("type").ok_or("missing type")?.to_ascii_lowercase();
        // Null counts as missing.
        let mut given = |field| fields.remove(field).filter(|node| !node.is_null());
        let settable = settable_value(&credential_type, given("value").ok_or("missing value")?)?;
        check_value(&credential_type, &settable)?;
        let value = settable.to_json()?;
        // Servers measure strings without quotes and escapes.
        let bytes = settable.text().map(str::len);
        if bytes.unwrap_or_else(|| value.expose().len()) > VALUE_BYTES_MAX {
            return Err("value must have at most 65536 bytes".to_owned());
        }
        let metadata = given("metadata").map(|node| node.to_json()).transpose()?;
        let characters = metadata.as_ref().map(|json| json.expose().chars().count());
        if characters > Some(METADATA_CHARACTERS_MAX) {
            return Err("metadata must have at most 7000 characters".to_owned());
        }
        let parameters = given("parameters");
        let ca_name = ca_name(&credential_type, &settable, parameters.as_ref());
        let provenance = provenance(given("generated_by"), parameters)?;
        Ok(Self {
            position,
            credential: SetCredential {
                name: full_name,
                credential_type,
                value,
                metadata,
                provenance,
            },
            ca_name,
        })
    }

    /// Returns whether a stored credential already has this type, value and metadata, regardless of the order of fields, and this
    /// plugin if the entry names one. Compares neither parameters, which servers may store in another form, nor fingerprints, which
    /// set keys do not have.
    pub(crate) fn is_stored_as(&self, stored: &Self) -> bool {
        let (own, stored) = (&self.credential, &stored.credential);
        let plugin =
            |one: &SetCredential| one.provenance.as_ref().map(|(digest, _)| digest.clone());
        let node = |json: &SecretJson| Node::from_json(json.expose()).ok();
        let value = |one: &SetCredential| match node(&one.value) {
            Some(Node::Mapping(mut fields)) if one.credential_type != "json" => {
                fields.retain(|(field, _)| field != FINGERPRINT);
                Some(Node::Mapping(fields))
            }
            other => other,
        };
        own.credential_type == stored.credential_type
            && own.metadata.as_ref().map(node) == stored.metadata.as_ref().map(node)
            && value(own) == value(stored)
            && (own.provenance.is_none() || plugin(own) == plugin(stored))
    }

    pub(crate) fn is_certificate(&self) -> bool {
        self.credential.credential_type == "certificate"
    }
}

impl fmt::Display for Position {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "entry {}", self.entry)?;
        match self.line {
            Some(line) => write!(formatter, ", line {line}"),
            None => Ok(()),
        }
    }
}

/// Adds the leading slash, which files may omit, as requests may.
pub(crate) fn with_leading_slash(name: &str) -> String {
    if name.starts_with('/') {
        name.to_owned()
    } else {
        format!("/{name}")
    }
}

/// Returns the value to set. Scalars stay verbatim where a string is required, and [`IGNORED_VALUE_FIELDS`] are omitted.
fn settable_value(credential_type: &str, value: Node) -> Result<Node, Reason> {
    match credential_type {
        "value" | "password" => {
            let text = value.text().ok_or("value must be a string")?;
            Ok(Node::quoted(text.to_owned()))
        }
        "user" | "certificate" | "rsa" | "ssh" => {
            let Node::Mapping(fields) = value else {
                return Err("value must be a mapping");
            };
            let mut texts = Vec::with_capacity(fields.len());
            for (field, node) in fields {
                if node.is_null() || IGNORED_VALUE_FIELDS.contains(&field.as_str()) {
                    continue;
                }
                let text = node.text().ok_or("the fields of value must be strings")?;
                texts.push((field, Node::quoted(text.to_owned())));
            }
            Ok(Node::Mapping(texts))
        }
        _ => Ok(value),
    }
}

fn provenance(
    generated_by: Option<Node>,
    parameters: Option<Node>,
) -> Result<Option<(String, SecretJson)>, String> {
    match (generated_by, parameters) {
        (None, None) => Ok(None),
        (Some(generated_by), Some(parameters @ Node::Mapping(_))) => {
            let digest = generated_by.text().ok_or("generated_by must be a string")?;
            Ok(Some((digest.to_owned(), parameters.to_json()?)))
        }
        (Some(_), Some(_)) => Err("parameters must be a mapping".to_owned()),
        (Some(_), None) => Err("parameters is required if generated_by is given".to_owned()),
        (None, Some(_)) => Err("generated_by is required if parameters is given".to_owned()),
    }
}

/// Returns the CA of an entry. Plugins name it by the parameter `ca`, as a convention.
fn ca_name(credential_type: &str, value: &Node, parameters: Option<&Node>) -> Option<String> {
    let name = if credential_type == "certificate" {
        text_field(value, "ca_name")
    } else {
        text_field(parameters?, "ca")
    };
    name.map(with_leading_slash)
}

/// Checks a name with a leading slash.
fn check_name(name: &str) -> Result<(), Reason> {
    if name == "/" {
        return Err("name is empty");
    }
    if !name.chars().all(is_name_character) {
        return Err("name may contain only letters, digits and the characters _ - / . : ( ) [ ]");
    }
    if name.ends_with('/') || name.contains("//") {
        return Err("name must not end with a slash or contain two slashes in a row");
    }
    if name.chars().count() > NAME_CHARACTERS_MAX {
        return Err("name must have at most 255 characters");
    }
    Ok(())
}

/// Checks the fields required by a type. Only the server can check the types of plugins.
fn check_value(credential_type: &str, value: &Node) -> Result<(), Reason> {
    let has = |name| text_field(value, name).is_some();
    match credential_type {
        "value" | "password" if value.text().is_none_or(str::is_empty) => {
            Err("value must be a non-empty string")
        }
        "json" if !matches!(value, Node::Mapping(_)) => Err("value must be a mapping"),
        "user" if !has("password") => Err("value has no password"),
        "rsa" | "ssh" if !has("public_key") && !has("private_key") => {
            Err("value has neither public_key nor private_key")
        }
        "certificate" => {
            if has("ca") && has("ca_name") {
                return Err("value has both ca and ca_name");
            }
            let fields = ["ca", "ca_name", "certificate", "private_key"];
            if fields.into_iter().any(has) {
                Ok(())
            } else {
                Err("value must have a ca, ca_name, certificate or private_key")
            }
        }
        _ => Ok(()),
    }
}

/// Returns the text of a value's field. An empty text counts as missing, as in requests.
fn text_field<'a>(value: &'a Node, name: &str) -> Option<&'a str> {
    let Node::Mapping(fields) = value else {
        return None;
    };
    let (_, node) = fields.iter().find(|(have, _)| have == name)?;
    node.text().filter(|text| !text.is_empty())
}

fn is_name_character(character: char) -> bool {
    character.is_ascii_alphanumeric() || "_-/.:()[]".contains(character)
}

/// The longest credential name, in characters, including the leading slash.
const NAME_CHARACTERS_MAX: usize = 255;

/// The largest value, in bytes: of the text for a string, of the JSON otherwise.
const VALUE_BYTES_MAX: usize = 65_536;

const METADATA_CHARACTERS_MAX: usize = 7_000;

/// The fields of an entry. The last two are ignored: other clients may have left them in the file.
const FIELDS: [&str; 8] = [
    "name",
    "type",
    "value",
    "metadata",
    "generated_by",
    "parameters",
    "id",
    "version_created_at",
];

/// Fields of a value that the server ignores: it computes a new hash, and set keys have no fingerprint.
const IGNORED_VALUE_FIELDS: [&str; 2] = ["password_hash", FINGERPRINT];

const FINGERPRINT: &str = "public_key_fingerprint";

#[cfg(test)]
mod tests {
    use zeroize::Zeroizing;

    use super::*;
    use crate::transfer::node::Scalar;

    #[test]
    fn names_follow_the_rules_of_the_api() {
        let longest = format!("/{}", "a".repeat(NAME_CHARACTERS_MAX - 1));
        let too_long = format!("{longest}a");
        let slashes = "name must not end with a slash or contain two slashes in a row";
        let characters =
            "name may contain only letters, digits and the characters _ - / . : ( ) [ ]";
        for (candidate, result) in [
            ("/a/b_c-d.e:f(1)[2]", Ok(())),
            (&longest, Ok(())),
            (&too_long, Err("name must have at most 255 characters")),
            ("/", Err("name is empty")),
            ("/a/", Err(slashes)),
            ("//a", Err(slashes)),
            ("/a b", Err(characters)),
            ("/ä", Err(characters)),
            ("/a,b", Err(characters)),
        ] {
            assert_eq!(check_name(candidate), result, "{candidate}");
        }
    }

    #[test]
    fn each_type_requires_its_fields() {
        for (credential_type, json, result) in [
            ("password", r#""x""#, Ok(())),
            ("password", r#""""#, Err("value must be a non-empty string")),
            ("value", "{}", Err("value must be a non-empty string")),
            ("json", "{}", Ok(())),
            ("json", "[]", Err("value must be a mapping")),
            ("user", r#"{"username":"a"}"#, Err("value has no password")),
            ("user", r#"{"password":""}"#, Err("value has no password")),
            ("user", r#"{"password":"p"}"#, Ok(())),
            (
                "rsa",
                r#"{"public_key":""}"#,
                Err("value has neither public_key nor private_key"),
            ),
            ("ssh", r#"{"private_key":"k"}"#, Ok(())),
            (
                "certificate",
                r#"{"ca":""}"#,
                Err("value must have a ca, ca_name, certificate or private_key"),
            ),
            ("certificate", r#"{"ca":"a","ca_name":""}"#, Ok(())),
            (
                "certificate",
                r#"{"ca":"a","ca_name":"b"}"#,
                Err("value has both ca and ca_name"),
            ),
            ("wireguard", "{}", Ok(())),
        ] {
            let node = Node::from_json(json).unwrap();
            assert_eq!(check_value(credential_type, &node), result, "{json}");
        }
    }

    #[test]
    fn too_large_values_and_metadata_are_refused() {
        let text = |text: &str| Node::quoted(text.to_owned());
        let plain = |text: &str| {
            Node::Scalar(Scalar {
                text: Zeroizing::new(text.to_owned()),
                is_quoted: false,
            })
        };
        let object = |text| Node::Mapping(vec![("a".to_owned(), Node::quoted(text))]);
        let frame = r#"{"a":""}"#.len();
        let position = Position {
            entry: 1,
            line: None,
        };
        for excess in [0, 1] {
            let quotes = "\"".repeat(VALUE_BYTES_MAX + excess);
            let letters = "x".repeat(VALUE_BYTES_MAX - frame + excess);
            let umlauts = "ä".repeat(METADATA_CHARACTERS_MAX - frame + excess);
            let value = "value must have at most 65536 bytes";
            let metadata = "metadata must have at most 7000 characters";
            let (empty, none) = (object(String::new()), Node::null);
            for (credential_type, value, metadata, refusal) in [
                ("password", text(&quotes), none(), value),
                ("wireguard", plain(&quotes), none(), value),
                ("json", object(letters), none(), value),
                ("json", empty, object(umlauts), metadata),
            ] {
                let fields = [
                    ("name", text("a")),
                    ("type", text(credential_type)),
                    ("value", value),
                    ("metadata", metadata),
                ];
                let fields = fields.map(|(field, node)| (field.to_owned(), node));
                let read = Entry::read(position, Node::Mapping(fields.into()), &mut None);
                assert_eq!(read.err().as_deref(), (excess == 1).then_some(refusal));
            }
        }
    }
}
