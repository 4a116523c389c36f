//! One credential of an export.

use std::fmt;

use keywright_json::JsonError;
use zeroize::Zeroizing;

use super::{
    check,
    node::{Node, Reason},
};
use crate::{Error, SetCredential};

/// One credential as a file lists it, ready to be set.
#[derive(Clone)]
pub(crate) struct Entry {
    /// Where it stands.
    pub(crate) place: Place,
    /// Its name, with its leading slash.
    pub(crate) name: String,
    /// Its type, in lower case.
    pub(crate) credential_type: String,
    /// Its value, as JSON.
    pub(crate) value: Zeroizing<String>,
    /// Its metadata, as JSON.
    pub(crate) metadata: Option<Zeroizing<String>>,
    /// The stored authority that signed it, with its leading slash.
    pub(crate) ca_name: Option<String>,
}

/// Where an entry stands in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The how-manieth it is, from 1.
    pub(crate) position: usize,
    /// The line where it begins, from 1, where that is known.
    pub(crate) line: Option<usize>,
}

/// An entry that can't be set as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EntryRefused {
    /// Where it stands.
    pub(crate) place: Place,
    /// Its name, if it has one.
    pub(crate) name: Option<String>,
    /// Why, without any of its content.
    pub(crate) reason: String,
}

impl Entry {
    /// Reads an entry, and checks it as far as that is possible without a server.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn of(place: Place, node: Node) -> Result<Self, EntryRefused> {
        let mut name = None;
        let entry = Self::read(place, node, &mut name);
        entry.map_err(|reason| EntryRefused {
            place,
            name,
            reason: reason.to_owned(),
        })
    }

    /// Reads an entry, and says its name as soon as it is known.
    fn read(place: Place, node: Node, name: &mut Option<String>) -> Result<Self, Reason> {
        let Members {
            name: name_node,
            credential_type,
            value,
            metadata,
        } = Members::of(node, name)?;
        let text = name_node.as_ref().and_then(Node::text).ok_or(NO_NAME)?;
        let full_name = with_leading_slash(text);
        *name = Some(full_name.clone());
        check::name(&full_name)?;
        let credential_type = credential_type.as_ref().and_then(Node::text);
        let credential_type = credential_type.ok_or(NO_TYPE)?.to_ascii_lowercase();
        let value = value.filter(|value| !value.is_null()).ok_or(NO_VALUE)?;
        let members = value_members(&credential_type, value)?;
        check::value(&credential_type, &members)?;
        let value = members.to_json()?;
        check::size(&members, &value)?;
        let metadata = metadata.as_ref().filter(|metadata| !metadata.is_null());
        let metadata = metadata.map(metadata_json).transpose()?;
        Ok(Self {
            place,
            name: full_name,
            ca_name: ca_name(&credential_type, &members),
            credential_type,
            value,
            metadata,
        })
    }

    /// The request that sets it.
    ///
    /// # Errors
    /// None in practice: the value was JSON when the entry was made.
    pub(crate) fn to_request(&self) -> Result<SetCredential, Error> {
        let malformed = |cause: JsonError| Error::RequestMalformed(cause.into());
        let value = keywright_json::raw(&self.value).map_err(malformed)?;
        let request = SetCredential::new(&self.name, &self.credential_type, value)?;
        Ok(match &self.metadata {
            Some(metadata) => request.metadata(keywright_json::read(metadata).map_err(malformed)?),
            None => request,
        })
    }

    /// Whether it holds the same as another one: type, value and metadata. The order of members does not matter.
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

    /// Whether it is a certificate.
    pub(crate) fn is_certificate(&self) -> bool {
        self.credential_type == "certificate"
    }
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "entry {}", self.position)?;
        match self.line {
            Some(line) => write!(formatter, ", line {line}"),
            None => Ok(()),
        }
    }
}

/// A name with its leading slash, which files may leave out as requests may.
pub(crate) fn with_leading_slash(name: &str) -> String {
    if name.starts_with('/') {
        name.to_owned()
    } else {
        format!("/{name}")
    }
}

/// The members of an entry.
#[derive(Default)]
struct Members {
    name: Option<Node>,
    credential_type: Option<Node>,
    value: Option<Node>,
    metadata: Option<Node>,
}

impl Members {
    fn of(node: Node, name: &mut Option<String>) -> Result<Self, Reason> {
        let Node::Mapping(members) = node else {
            return Err(NOT_A_MAPPING);
        };
        let mut taken = Self::default();
        let mut has_unknown = false;
        for (member, node) in members {
            match member.as_str() {
                "name" => taken.name = Some(node),
                "type" => taken.credential_type = Some(node),
                "value" => taken.value = Some(node),
                "metadata" => taken.metadata = Some(node),
                other => has_unknown |= !ANSWERED_MEMBERS.contains(&other),
            }
        }
        if has_unknown {
            let text = taken.name.as_ref().and_then(Node::text);
            *name = text.map(with_leading_slash);
            return Err(UNKNOWN_MEMBER);
        }
        Ok(taken)
    }
}

/// The value in the form in which it is set: texts are what was written, whatever they would stand for elsewhere, and
/// what the server makes itself is left out.
fn value_members(credential_type: &str, value: Node) -> Result<Node, Reason> {
    match credential_type {
        "value" | "password" => {
            let text = value.text().ok_or(NOT_A_TEXT)?;
            Ok(Node::quoted(text.to_owned()))
        }
        "user" | "certificate" | "rsa" | "ssh" => {
            let Node::Mapping(members) = value else {
                return Err(NOT_MEMBERS);
            };
            let mut texts = Vec::with_capacity(members.len());
            for (member, node) in members {
                if node.is_null() || MADE_MEMBERS.contains(&member.as_str()) {
                    continue;
                }
                let text = node.text().ok_or(MEMBER_NOT_A_TEXT)?;
                texts.push((member, Node::quoted(text.to_owned())));
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
    let name = check::member(value, "ca_name")?;
    Some(with_leading_slash(name))
}

/// Members of a server's answer that other clients may have left in the file.
const ANSWERED_MEMBERS: [&str; 2] = ["id", "version_created_at"];

/// Members that the server computes.
const MADE_MEMBERS: [&str; 2] = ["password_hash", "public_key_fingerprint"];

const NOT_A_MAPPING: Reason = "it is not a mapping with name, type and value";
const UNKNOWN_MEMBER: Reason = "it has a member that is not one of name, type, value and metadata";
const NO_NAME: Reason = "it has no name";
const NO_TYPE: Reason = "it has no type";
const NO_VALUE: Reason = "it has no value";
const NOT_A_TEXT: Reason = "value must be a text";
const NOT_MEMBERS: Reason = "value must be a mapping";
const MEMBER_NOT_A_TEXT: Reason = "a member of value is not a text";
