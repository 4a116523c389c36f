//! The content of an export in either format: verbatim scalars, lists and mappings.

use std::collections::HashMap;

use keywright_json::JsonError;
use zeroize::Zeroizing;

use super::core_schema;

/// The deepest nesting of lists and mappings in an entry.
pub(crate) const DEPTH_MAX: usize = 128;

/// A scalar, a list or a mapping. It has no `Debug`, because its content is mostly secret.
#[derive(Clone)]
pub(crate) enum Node {
    /// A string or, if unquoted, possibly a number, a boolean or null.
    Scalar(Scalar),
    /// A list.
    List(Vec<Node>),
    /// A mapping, in the order of the file.
    Mapping(Vec<(String, Node)>),
}

/// A verbatim scalar.
#[derive(Clone)]
pub(crate) struct Scalar {
    /// The text, without quotes and escapes.
    pub(crate) text: Zeroizing<String>,
    /// Whether the scalar is a string because of quotes, its tag or its style.
    pub(crate) is_quoted: bool,
}

/// Why a node is invalid. Never contains content of the file.
pub(crate) type Reason = &'static str;

impl Node {
    /// Creates a string.
    pub(crate) fn quoted(text: String) -> Self {
        Self::Scalar(Scalar {
            text: Zeroizing::new(text),
            is_quoted: true,
        })
    }

    /// Creates a null.
    pub(crate) fn null() -> Self {
        Self::Scalar(Scalar {
            text: Zeroizing::new("null".to_owned()),
            is_quoted: false,
        })
    }

    /// Parses JSON. Numbers keep all digits.
    ///
    /// # Errors
    /// When the text is not JSON, has duplicate or reserved keys, or is nested deeper than [`DEPTH_MAX`].
    pub(crate) fn from_json(json: &str) -> Result<Self, Reason> {
        keywright_json::check_response(json).map_err(reason)?;
        Self::from_json_at(json.trim(), 0)
    }

    fn from_json_at(json: &str, depth: usize) -> Result<Self, Reason> {
        if depth > DEPTH_MAX {
            return Err(TOO_DEEP);
        }
        match json.bytes().next() {
            Some(b'"') => Ok(Self::quoted(keywright_json::text(json).map_err(reason)?)),
            Some(b'[') => {
                let nodes = keywright_json::items(json)
                    .map_err(reason)?
                    .into_iter()
                    .map(|item| Self::from_json_at(item.get(), depth + 1));
                Ok(Self::List(nodes.collect::<Result<_, _>>()?))
            }
            Some(b'{') => {
                let nodes = keywright_json::fields(json)
                    .map_err(reason)?
                    .into_iter()
                    .map(|(key, value)| Ok((key, Self::from_json_at(value.get(), depth + 1)?)));
                Ok(Self::Mapping(nodes.collect::<Result<_, Reason>>()?))
            }
            _ => {
                keywright_json::raw(json).map_err(reason)?;
                Ok(Self::Scalar(Scalar {
                    text: Zeroizing::new(json.to_owned()),
                    is_quoted: false,
                }))
            }
        }
    }

    /// Converts the node to JSON. Resolves unquoted scalars by YAML's core schema.
    ///
    /// # Errors
    /// When the node contains infinity or NaN, or a hexadecimal or octal number of more than 128 bits.
    pub(crate) fn to_json(&self) -> Result<Zeroizing<String>, Reason> {
        let mut json = Zeroizing::new(String::new());
        self.write_json(&mut json)?;
        Ok(json)
    }

    fn write_json(&self, json: &mut String) -> Result<(), Reason> {
        match self {
            Self::Scalar(scalar) if scalar.is_quoted => json.push_str(&json_text(&scalar.text)),
            Self::Scalar(scalar) => match core_schema::resolve(&scalar.text)? {
                Some(resolved) => json.push_str(&resolved),
                None => json.push_str(&json_text(&scalar.text)),
            },
            Self::List(nodes) => {
                json.push('[');
                for (index, node) in nodes.iter().enumerate() {
                    if index > 0 {
                        json.push(',');
                    }
                    node.write_json(json)?;
                }
                json.push(']');
            }
            Self::Mapping(fields) => {
                json.push('{');
                for (index, (key, node)) in fields.iter().enumerate() {
                    if index > 0 {
                        json.push(',');
                    }
                    json.push_str(&json_text(key));
                    json.push(':');
                    node.write_json(json)?;
                }
                json.push('}');
            }
        }
        Ok(())
    }

    /// Returns the verbatim text of a scalar, such as `007`, `yes` or `2026-11-22`. `None` for lists, mappings and null.
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Scalar(scalar) if !self.is_null() => Some(&scalar.text),
            _ => None,
        }
    }

    /// Whether the node is null.
    pub(crate) fn is_null(&self) -> bool {
        let Self::Scalar(scalar) = self else {
            return false;
        };
        !scalar.is_quoted && core_schema::is_null(&scalar.text)
    }

    /// Whether two nodes are equal, regardless of the order of keys. Numbers are compared verbatim.
    pub(crate) fn is_same_as(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Scalar(one), Self::Scalar(other)) => {
                one.is_quoted == other.is_quoted && one.text == other.text
            }
            (Self::List(one), Self::List(other)) => {
                one.len() == other.len()
                    && one
                        .iter()
                        .zip(other)
                        .all(|(one, other)| one.is_same_as(other))
            }
            (Self::Mapping(one), Self::Mapping(other)) => {
                let others: HashMap<_, _> = other.iter().map(|(key, node)| (key, node)).collect();
                one.len() == other.len()
                    && one.iter().all(|(key, node)| {
                        others.get(key).is_some_and(|other| node.is_same_as(other))
                    })
            }
            _ => false,
        }
    }

    /// Returns the nesting depth of lists and mappings.
    pub(crate) fn depth(&self) -> usize {
        let inner = match self {
            Self::Scalar(_) => return 0,
            Self::List(nodes) => nodes.iter().map(Self::depth).max(),
            Self::Mapping(fields) => fields.iter().map(|(_, node)| node.depth()).max(),
        };
        inner.unwrap_or_default() + 1
    }

    /// Returns the approximate size in memory.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>()
            + match self {
                Self::Scalar(scalar) => scalar.text.len(),
                Self::List(nodes) => nodes.iter().map(Self::bytes).sum(),
                Self::Mapping(fields) => {
                    let sizes = fields
                        .iter()
                        .map(|(key, node)| size_of::<String>() + key.len() + node.bytes());
                    sizes.sum()
                }
            }
    }
}

/// Returns a text as a JSON string.
pub(crate) fn json_text(text: &str) -> Zeroizing<String> {
    Zeroizing::new(serde_json::Value::from(text).to_string())
}

fn reason(error: JsonError) -> Reason {
    match error {
        JsonError::DuplicateKey => KEY_DUPLICATE,
        JsonError::ReservedKey => KEY_RESERVED,
        JsonError::TooDeep => TOO_DEEP,
        _ => NOT_JSON,
    }
}

pub(crate) const TOO_DEEP: Reason = "lists and mappings are nested deeper than 128 levels";
const KEY_DUPLICATE: Reason = "an object has a duplicate key";
const KEY_RESERVED: Reason = "a key starts with $serde_json::private::, which is reserved";
const NOT_JSON: Reason = "invalid JSON";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_round_trips_with_all_digits_in_order() {
        for json in [
            r#"{"z":1,"a":[true,false,null,"x\n\"ä\u0001"],"":{}}"#,
            "[1.10,1e300,-0,-0.0,123456789012345678901234567890,1E+2]",
            r#""true""#,
            "[]",
        ] {
            let node = Node::from_json(json).unwrap();
            assert_eq!(node.to_json().unwrap().as_str(), json);
        }
    }

    #[test]
    fn invalid_json_is_refused() {
        for json in ["", "nul", "{", "01", "'a'", "1 2"] {
            assert_eq!(Node::from_json(json).err(), Some(NOT_JSON), "{json}");
        }
    }

    #[test]
    fn nesting_above_the_limit_is_refused() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(Node::from_json(&nested(DEPTH_MAX + 1)).is_ok());
        assert_eq!(
            Node::from_json(&nested(DEPTH_MAX + 2)).err(),
            Some(TOO_DEEP)
        );
        assert_eq!(Node::from_json(&nested(100_000)).err(), Some(TOO_DEEP));
    }
}
