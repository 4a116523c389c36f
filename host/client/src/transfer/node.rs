//! The parsed content of an export, in JSON or YAML: lists, mappings and verbatim scalars. Also resolves unquoted scalars.

use std::collections::HashMap;

use keywright_json::JsonError;
use serde::{Serialize, Serializer, ser::Error as _};
use zeroize::Zeroizing;

use crate::SecretJson;

/// The deepest nesting of lists and mappings in an entry.
pub(crate) const DEPTH_MAX: usize = 128;

/// A scalar, a list or a mapping. It has no `Debug`, because its content is mostly secret.
#[derive(Clone)]
pub(crate) enum Node {
    /// A string or, if unquoted, possibly a number, a boolean or null.
    Scalar(Scalar),
    List(Vec<Node>),
    /// A mapping, in the order of the file.
    Mapping(Vec<(String, Node)>),
}

/// A verbatim scalar.
#[derive(Clone, PartialEq)]
pub(crate) struct Scalar {
    /// The text, without quotes and escapes.
    pub(crate) text: Zeroizing<String>,
    /// Whether the scalar is a string because of quotes, its tag or its style.
    pub(crate) is_quoted: bool,
}

/// The reason why a node is invalid. Never contains content of the file.
pub(crate) type Reason = &'static str;

impl Node {
    pub(crate) fn quoted(text: String) -> Self {
        Self::Scalar(Scalar {
            text: Zeroizing::new(text),
            is_quoted: true,
        })
    }

    pub(crate) fn null() -> Self {
        Self::Scalar(Scalar {
            text: Zeroizing::new("null".to_owned()),
            is_quoted: false,
        })
    }

    /// Parses JSON. Numbers keep all digits.
    pub(crate) fn from_json(json: &str) -> Result<Self, JsonError> {
        keywright_json::check_response(json)?;
        Self::from_json_at(json.trim(), 0)
    }

    fn from_json_at(json: &str, depth: usize) -> Result<Self, JsonError> {
        if depth > DEPTH_MAX {
            return Err(JsonError::TooDeep(DEPTH_MAX));
        }
        match json.bytes().next() {
            Some(b'"') => Ok(Self::quoted(keywright_json::text(json)?)),
            Some(b'[') => {
                let nodes = keywright_json::items(json)?
                    .into_iter()
                    .map(|item| Self::from_json_at(item.get(), depth + 1));
                Ok(Self::List(nodes.collect::<Result<_, _>>()?))
            }
            Some(b'{') => {
                let nodes = keywright_json::fields(json)?
                    .into_iter()
                    .map(|(key, value)| Ok((key, Self::from_json_at(value.get(), depth + 1)?)));
                Ok(Self::Mapping(nodes.collect::<Result<_, JsonError>>()?))
            }
            _ => {
                keywright_json::raw(json)?;
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
    pub(crate) fn to_json(&self) -> Result<SecretJson, String> {
        SecretJson::of(self).map_err(|error| error.to_string())
    }

    /// Returns the verbatim text of a scalar, such as `007`, `yes` or `2026-11-22`. `None` for lists, mappings and null.
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Scalar(scalar) if !self.is_null() => Some(&scalar.text),
            _ => None,
        }
    }

    pub(crate) fn is_null(&self) -> bool {
        let Self::Scalar(scalar) = self else {
            return false;
        };
        !scalar.is_quoted && is_null_text(&scalar.text)
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

fn by_key(fields: &[(String, Node)]) -> HashMap<&str, &Node> {
    let fields = fields.iter();
    fields.map(|(key, node)| (key.as_str(), node)).collect()
}

/// Compares nodes regardless of the order of keys. Numbers are compared verbatim.
impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Scalar(one), Self::Scalar(other)) => one == other,
            (Self::List(one), Self::List(other)) => one == other,
            (Self::Mapping(one), Self::Mapping(other)) => by_key(one) == by_key(other),
            _ => false,
        }
    }
}

impl Serialize for Node {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let scalar = match self {
            Self::List(nodes) => return serializer.collect_seq(nodes),
            Self::Mapping(fields) => {
                return serializer.collect_map(fields.iter().map(|(key, node)| (key, node)));
            }
            Self::Scalar(scalar) => scalar,
        };
        if !scalar.is_quoted
            && let Some(json) = resolve_scalar(&scalar.text).map_err(S::Error::custom)?
        {
            let json = keywright_json::raw(&json).map_err(S::Error::custom)?;
            return json.serialize(serializer);
        }
        serializer.serialize_str(&scalar.text)
    }
}

/// Returns the JSON of an unquoted scalar by the core schema of YAML 1.2.2, section 10.3.2; `None` if it is a string.
///
/// Scalars that only YAML 1.1 resolves are strings: `yes`, `on`, `1_000`, `12:30` and dates.
///
/// # Errors
/// When the scalar is a number that JSON can't represent.
fn resolve_scalar(text: &str) -> Result<Option<String>, Reason> {
    if is_null_text(text) {
        return Ok(Some("null".to_owned()));
    }
    match text {
        "true" | "True" | "TRUE" => return Ok(Some("true".to_owned())),
        "false" | "False" | "FALSE" => return Ok(Some("false".to_owned())),
        _ => {}
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return Err("infinity and NaN are not allowed");
    }
    if let Some(digits) = text.strip_prefix("0x") {
        return in_base(digits, 16);
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return in_base(digits, 8);
    }
    Ok(decimal(text.starts_with('-'), unsigned))
}

/// Returns whether an unquoted scalar is null.
fn is_null_text(text: &str) -> bool {
    matches!(text, "" | "~" | "null" | "Null" | "NULL")
}

fn in_base(digits: &str, base: u32) -> Result<Option<String>, Reason> {
    if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(base)) {
        return Ok(None);
    }
    let number = u128::from_str_radix(digits, base)
        .map_err(|_| "a hexadecimal or octal number has more than 128 bits")?;
    Ok(Some(number.to_string()))
}

/// Returns a decimal number in JSON syntax with all digits; `None` if it is not a number.
fn decimal(is_negative: bool, unsigned: &str) -> Option<String> {
    let exponent = unsigned.find(['e', 'E']).unwrap_or(unsigned.len());
    let (mantissa, exponent) = unsigned.split_at(exponent);
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, "")) => (whole, ".0".to_owned()),
        Some(("", fraction)) => ("0", format!(".{fraction}")),
        Some((whole, fraction)) => (whole, format!(".{fraction}")),
        None => (mantissa, String::new()),
    };
    if !is_digits(whole) {
        return None;
    }
    let sign = if is_negative { "-" } else { "" };
    let whole = match whole.trim_start_matches('0') {
        "" => "0",
        significant => significant,
    };
    let json = format!("{sign}{whole}{fraction}{exponent}");
    // Fraction and exponent have the same syntax in JSON.
    keywright_json::raw(&json)
        .is_ok_and(|number| number.get() == json)
        .then_some(json)
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

pub(crate) const TOO_DEEP: Reason = "lists and mappings are nested more than 128 levels deep";

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
            assert_eq!(node.to_json().unwrap().expose(), json);
        }
    }

    #[test]
    fn invalid_json_is_refused() {
        for json in ["", "nul", "{", "01", "'a'", "1 2"] {
            assert!(Node::from_json(json).is_err(), "{json}");
        }
    }

    #[test]
    fn nesting_above_the_limit_is_refused() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(Node::from_json(&nested(DEPTH_MAX + 1)).is_ok());
        for depth in [DEPTH_MAX + 2, 100_000] {
            let refused = Node::from_json(&nested(depth)).err();
            assert!(matches!(refused, Some(JsonError::TooDeep(_))));
        }
    }

    #[test]
    fn unquoted_scalars_follow_the_core_schema() {
        for (text, json) in [
            ("", Some("null")),
            ("~", Some("null")),
            ("null", Some("null")),
            ("nULL", None),
            ("true", Some("true")),
            ("FALSE", Some("false")),
            ("yes", None),
            ("on", None),
            ("0", Some("0")),
            ("-0", Some("-0")),
            ("007", Some("7")),
            ("+12", Some("12")),
            ("12345678901234567890123", Some("12345678901234567890123")),
            ("0x1F", Some("31")),
            ("0o17", Some("15")),
            ("0x", None),
            ("0xg", None),
            ("-0x1", None),
            ("1.10", Some("1.10")),
            (".5", Some("0.5")),
            ("-.5e1", Some("-0.5e1")),
            ("5.", Some("5.0")),
            ("5.e3", Some("5.0e3")),
            ("1E+2", Some("1E+2")),
            ("1e400", Some("1e400")),
            (".", None),
            ("-", None),
            ("+", None),
            ("e1", None),
            ("1e", None),
            ("1e+", None),
            ("1.2.3", None),
            ("--1", None),
            ("1_000", None),
            ("12:30", None),
            ("2026-11-22", None),
            ("1 2", None),
            ("١", None),
        ] {
            assert_eq!(resolve_scalar(text).unwrap().as_deref(), json, "{text}");
            if let Some(json) = json {
                assert!(serde_json::from_str::<&serde_json::value::RawValue>(json).is_ok());
            }
        }
    }

    #[test]
    fn numbers_that_json_can_t_represent_are_refused() {
        for text in [".inf", "-.INF", "+.Inf", ".nan", ".NaN"] {
            assert_eq!(
                resolve_scalar(text),
                Err("infinity and NaN are not allowed"),
                "{text}"
            );
        }
        let largest = format!("0x{}", "f".repeat(32));
        assert_eq!(resolve_scalar(&largest), Ok(Some(u128::MAX.to_string())));
        assert_eq!(
            resolve_scalar(&format!("{largest}f")),
            Err("a hexadecimal or octal number has more than 128 bits")
        );
    }
}
