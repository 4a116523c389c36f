//! Entries of an export file.

use std::fmt;

use keywright_json::JsonError;
use zeroize::Zeroizing;

use super::{
    check,
    node::{Node, Reason},
};
use crate::{Error, SetCredential};

/// A credential of a file, ready to be set.
#[derive(Clone)]
pub(crate) struct Entry {
    pub(crate) position: Position,
    /// The name, with a leading slash.
    pub(crate) name: String,
    /// The type, in lower case.
    pub(crate) credential_type: String,
    /// The value, as JSON.
    pub(crate) value: Zeroizing<String>,
    /// The metadata, as JSON.
    pub(crate) metadata: Option<Zeroizing<String>>,
    /// The name of the signing CA, with a leading slash.
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

/// An invalid entry.
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
            reason: reason.to_owned(),
        })
    }

    /// Parses an entry, and stores its name as soon as it is known.
    fn read(position: Position, node: Node, name: &mut Option<String>) -> Result<Self, Reason> {
        let Fields {
            name: name_node,
            credential_type,
            value,
            metadata,
        } = Fields::of(node, name)?;
        let text = name_node.as_ref().and_then(Node::text).ok_or(NO_NAME)?;
        let full_name = with_leading_slash(text);
        *name = Some(full_name.clone());
        check::name(&full_name)?;
        let credential_type = credential_type.as_ref().and_then(Node::text);
        let credential_type = credential_type.ok_or(NO_TYPE)?.to_ascii_lowercase();
        let value = value.filter(|value| !value.is_null()).ok_or(NO_VALUE)?;
        let settable = settable_value(&credential_type, value)?;
        check::value(&credential_type, &settable)?;
        let value = settable.to_json()?;
        check::size(&settable, &value)?;
        let metadata = metadata.as_ref().filter(|metadata| !metadata.is_null());
        let metadata = metadata.map(metadata_json).transpose()?;
        Ok(Self {
            position,
            name: full_name,
            ca_name: ca_name(&credential_type, &settable),
            credential_type,
            value,
            metadata,
        })
    }

    /// Returns the request to set the credential.
    ///
    /// # Errors
    /// None in practice: `of` has validated the JSON.
    pub(crate) fn to_request(&self) -> Result<SetCredential, Error> {
        let malformed = |cause: JsonError| Error::RequestMalformed(cause.into());
        let value = keywright_json::raw(&self.value).map_err(malformed)?;
        let request = SetCredential::new(&self.name, &self.credential_type, value)?;
        Ok(match &self.metadata {
            Some(metadata) => request.metadata(keywright_json::read(metadata).map_err(malformed)?),
            None => request,
        })
    }

    /// Whether type, value and metadata are equal, regardless of the order of fields.
    pub(crate) fn is_same_as(&self, other: &Self) -> bool {
        let is_same = |one: &str, other: &str| match (Node::from_json(one), Node::from_json(other))
        {
            (Ok(one), Ok(other)) => one.is_same_as(&other),
            _ => false,
        };
        self.credential_type == other.credential_type
            && match (&self.metadata, &other.metadata) {
                (Some(metadata), Some(other)) => is_same(metadata, other),
                (None, None) => true,
                _ => false,
            }
            && is_same(&self.value, &other.value)
    }

    pub(crate) fn is_certificate(&self) -> bool {
        self.credential_type == "certificate"
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

/// The fields of an entry.
#[derive(Default)]
struct Fields {
    name: Option<Node>,
    credential_type: Option<Node>,
    value: Option<Node>,
    metadata: Option<Node>,
}

impl Fields {
    fn of(node: Node, name: &mut Option<String>) -> Result<Self, Reason> {
        let Node::Mapping(nodes) = node else {
            return Err(NOT_A_MAPPING);
        };
        let mut fields = Self::default();
        let mut has_unknown = false;
        for (field, node) in nodes {
            match field.as_str() {
                "name" => fields.name = Some(node),
                "type" => fields.credential_type = Some(node),
                "value" => fields.value = Some(node),
                "metadata" => fields.metadata = Some(node),
                other => has_unknown |= !IGNORED_FIELDS.contains(&other),
            }
        }
        if has_unknown {
            let text = fields.name.as_ref().and_then(Node::text);
            *name = text.map(with_leading_slash);
            return Err(UNKNOWN_FIELD);
        }
        Ok(fields)
    }
}

/// Returns the value to set. Scalars stay verbatim where a string is required, and fields computed by the server are omitted.
fn settable_value(credential_type: &str, value: Node) -> Result<Node, Reason> {
    match credential_type {
        "value" | "password" => {
            let text = value.text().ok_or(NOT_A_TEXT)?;
            Ok(Node::quoted(text.to_owned()))
        }
        "user" | "certificate" | "rsa" | "ssh" => {
            let Node::Mapping(fields) = value else {
                return Err(NOT_FIELDS);
            };
            let mut texts = Vec::with_capacity(fields.len());
            for (field, node) in fields {
                if node.is_null() || COMPUTED_FIELDS.contains(&field.as_str()) {
                    continue;
                }
                let text = node.text().ok_or(FIELD_NOT_A_TEXT)?;
                texts.push((field, Node::quoted(text.to_owned())));
            }
            Ok(Node::Mapping(texts))
        }
        _ => Ok(value),
    }
}

fn metadata_json(metadata: &Node) -> Result<Zeroizing<String>, Reason> {
    let json = metadata.to_json()?;
    check::metadata(&json)?;
    Ok(json)
}

fn ca_name(credential_type: &str, value: &Node) -> Option<String> {
    if credential_type != "certificate" {
        return None;
    }
    let name = check::field(value, "ca_name")?;
    Some(with_leading_slash(name))
}

/// Fields of server responses that other clients may have left in the file.
const IGNORED_FIELDS: [&str; 2] = ["id", "version_created_at"];

/// Fields that the server computes.
const COMPUTED_FIELDS: [&str; 2] = ["password_hash", "public_key_fingerprint"];

const NOT_A_MAPPING: Reason = "entry must be a mapping with name, type and value";
const UNKNOWN_FIELD: Reason = "unknown field; allowed fields are name, type, value and metadata";
const NO_NAME: Reason = "missing name";
const NO_TYPE: Reason = "missing type";
const NO_VALUE: Reason = "missing value";
const NOT_A_TEXT: Reason = "value must be a string";
const NOT_FIELDS: Reason = "value must be a mapping";
const FIELD_NOT_A_TEXT: Reason = "the fields of value must be strings";
