//! Reads JSON from outside the process: from requests, tokens, plugins, files, the database and other servers.
//!
//! The host's production code parses JSON only with this crate. `serde_json` alone is not safe for untrusted text:
//!
//! - If any crate of the program enables the feature `raw_value`, parsing a [`serde_json::Value`] also parses the string under
//!   the key `$serde_json::private::RawValue` as JSON, with a new recursion limit. A few such levels overflow the stack. One
//!   level can put a number in place of an object that a schema has validated.
//! - The last of several equal keys wins silently, so two parsers can interpret the same text differently.
//! - Skipped text (`RawValue`, `IgnoredAny`) has no depth limit. If it is parsed later, its depth is counted from zero.
//!
//! Two ways of reading are safe:
//!
//! - [`read`] and [`read_bytes`] check the whole text and then parse it into any type. [`check`] returns [`Checked`], which
//!   parses parts of the checked text without another check.
//! - [`raw`], [`fields`], [`items`] and [`text`] split a text by one level without parsing the parts. They need no
//!   check, because they never recurse and never build a `Value`.

mod check;
pub mod pointer;

pub use check::{Checked, CheckedText, check, check_response, read, read_bytes};

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{MapAccess, Visitor},
    ser::Error as _,
};
use serde_json::{error::Category, value::RawValue};
use zeroize::Zeroizing;

/// The deepest nesting of arrays and objects in a document, in levels. `[]` has one level.
pub const DEPTH_MAX: usize = 128;

/// The maximum nesting in a response of this API, in levels: [`DEPTH_MAX`] of a document, as many of the value that replaces its
/// innermost reference, and a few that the API adds around the document.
pub const RESPONSE_DEPTH_MAX: usize = 2 * DEPTH_MAX + 8;

/// No key may start with this text, escaped or not, because such keys have a special meaning in `serde_json`.
pub const RESERVED_KEY_PREFIX: &str = "$serde_json::private::";

/// Converts bytes, which must be UTF-8, to text.
pub fn utf8(bytes: &[u8]) -> Result<&str, JsonError> {
    str::from_utf8(bytes).map_err(|_| JsonError::NotUtf8)
}

/// The reason why a text was rejected. Neither `Display` nor `Debug` shows any of the text, except a key that [`shown_key`] shows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JsonError {
    /// An object has this duplicate key, possibly with different escapes.
    #[error("duplicate key `{0}`")]
    DuplicateKey(String),
    /// The text is valid JSON, but a field is missing or of another type.
    #[error("a field is missing or has the wrong type (line {line}, column {column})")]
    Mismatched {
        /// The line, from 1.
        line: usize,
        /// The column, from 1; 0 if unknown.
        column: usize,
    },
    /// The text is not valid JSON.
    #[error("invalid JSON (line {line}, column {column})")]
    Malformed {
        /// The line, from 1.
        line: usize,
        /// The column, from 1; 0 if unknown.
        column: usize,
    },
    /// The text is not UTF-8.
    #[error("the JSON is not UTF-8")]
    NotUtf8,
    /// A key starts with [`RESERVED_KEY_PREFIX`].
    #[error("a key starts with {RESERVED_KEY_PREFIX}, which is reserved")]
    ReservedKey,
    /// Arrays and objects are nested more than this number of levels deep.
    #[error("arrays and objects are nested more than {0} levels deep")]
    TooDeep(usize),
    /// The text ends before the JSON does.
    #[error("the JSON ends too early (line {line}, column {column})")]
    Truncated {
        /// The line, from 1.
        line: usize,
        /// The column, from 1; 0 if unknown.
        column: usize,
    },
}

impl From<serde_json::Error> for JsonError {
    fn from(error: serde_json::Error) -> Self {
        let (line, column) = (error.line(), error.column());
        match error.classify() {
            Category::Data => Self::Mismatched { line, column },
            Category::Eof => Self::Truncated { line, column },
            Category::Io | Category::Syntax => Self::Malformed { line, column },
        }
    }
}

impl From<JsonError> for serde_json::Error {
    fn from(error: JsonError) -> Self {
        <Self as serde::de::Error>::custom(error)
    }
}

/// Returns a key for a message if it has the form of an identifier. Other keys may be misplaced secrets.
pub fn shown_key(key: &str) -> &str {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    let is_identifier = (1..=SHOWN_BYTES_MAX).contains(&key.len()) && key.bytes().all(is_part);
    if is_identifier { key } else { "(not shown)" }
}

/// The longest key that messages show, in bytes.
const SHOWN_BYTES_MAX: usize = 64;

/// Returns whether a character could end a line, control a terminal, change the direction of text, or be invisible.
pub fn is_control_or_invisible(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

/// Returns the text as raw JSON, without surrounding whitespace. Checks its syntax, but not its depth and keys.
pub fn raw(text: &str) -> Result<&RawValue, JsonError> {
    Ok(serde_json::from_str(text)?)
}

/// Returns the fields of an object in order, each value as its original text. Duplicate keys are not removed.
pub fn fields(text: &str) -> Result<Vec<(String, &RawValue)>, JsonError> {
    let Fields(fields) = serde_json::from_str(text)?;
    Ok(fields)
}

/// Returns the items of an array, each as its original text.
pub fn items(text: &str) -> Result<Vec<&RawValue>, JsonError> {
    Ok(serde_json::from_str(text)?)
}

/// Returns the unescaped text of a JSON string.
pub fn text(json: &str) -> Result<String, JsonError> {
    Ok(serde_json::from_str(json)?)
}

/// Removes whitespace between the tokens of a JSON text, and replaces escapes in strings with the characters where possible. Numbers
/// are unchanged. So the size of the result does not depend on how a client escapes.
pub fn compact(json: &str) -> String {
    // The result is never longer than the text: a buffer that grows leaves parts of a secret in freed memory.
    let mut compacted = Vec::with_capacity(json.len());
    let mut rest = json;
    while !rest.is_empty() {
        let (between, string) = rest.split_at(rest.find('"').unwrap_or(rest.len()));
        let is_whitespace = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        compacted.extend(between.bytes().filter(|byte| !is_whitespace(byte)));
        let (string, after) = string.split_at(string_bytes(string));
        let unescaped = if string.contains('\\') {
            text(string).map(Zeroizing::new).ok()
        } else {
            None
        };
        match unescaped {
            // Writing a string to a vector does not fail.
            Some(text) => drop(serde_json::to_writer(&mut compacted, &*text)),
            None => compacted.extend_from_slice(string.as_bytes()),
        }
        rest = after;
    }
    String::from_utf8(compacted).unwrap_or_default()
}

/// Indents JSON. Scalars are not parsed, so that numbers keep all digits.
pub fn indented(json: &RawValue) -> Result<String, JsonError> {
    Ok(serde_json::to_string_pretty(&Parsed(json))?)
}

/// JSON that is serialized part by part.
struct Parsed<'a>(&'a RawValue);

impl Serialize for Parsed<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let json = self.0.get();
        if json.starts_with('{') {
            let fields = fields(json).map_err(S::Error::custom)?;
            serializer.collect_map(fields.into_iter().map(|(key, value)| (key, Parsed(value))))
        } else if json.starts_with('[') {
            let items = items(json).map_err(S::Error::custom)?;
            serializer.collect_seq(items.into_iter().map(Parsed))
        } else {
            self.0.serialize(serializer)
        }
    }
}

/// Returns the length of the JSON string at the start of the text, with its quotation marks.
fn string_bytes(text: &str) -> usize {
    let mut bytes = text.bytes().enumerate().skip(1);
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'"' => return at + 1,
            b'\\' => drop(bytes.next()),
            _ => {}
        }
    }
    text.len()
}

struct Fields<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldsVisitor;

        impl<'de> Visitor<'de> for FieldsVisitor {
            type Value = Fields<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }

        deserializer.deserialize_map(FieldsVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_and_invisible_characters_are_recognized() {
        let recognized = "\0\u{7f}\u{85}\u{ad}\u{61c}\u{180e}\u{200b}\u{200f}\u{2028}\u{202e}\u{2060}\u{2069}\u{206f}\u{feff}\
            \u{fff9}\u{fffb}\u{e0001}\u{e007f}";
        assert!(recognized.chars().all(is_control_or_invisible));
        let ordinary =
            "a ä\u{200a}\u{2010}\u{2027}\u{202f}\u{205f}\u{2070}\u{fefe}\u{fffd}\u{10348}";
        assert!(!ordinary.chars().any(is_control_or_invisible));
    }

    #[test]
    fn parts_are_split_at_one_level_only() {
        let deep = "[".repeat(1_000_000) + &"]".repeat(1_000_000);
        let object = format!(r#"{{"a": {deep}, "$serde_json::private::RawValue": "1"}}"#);
        let fields = fields(&object).unwrap();
        assert_eq!(fields[0].1.get(), deep);
        assert_eq!(fields[1].1.get(), "\"1\"");
        assert_eq!(items(&deep).unwrap()[0].get().len(), deep.len() - 2);
        assert_eq!(raw(&format!(" {deep}\n")).unwrap().get(), deep);
        assert!(text(&deep).is_err() && text("null").is_err());
        assert_eq!(text(r#""\u0061""#).unwrap(), "a");
    }

    #[test]
    fn compact_json_keeps_the_text_of_strings() {
        for (json, compacted) in [
            (r#"["\u003ca\u0026\/\u00E9\ud83d\ude00"]"#, r#"["<a&/é😀"]"#),
            (
                r#"{"\u0061":"\u0022\u005c\n\u000A\u0001"}"#,
                r#"{"a":"\"\\\n\n\u0001"}"#,
            ),
            (r#"["\ud800", 1]"#, r#"["\ud800",1]"#),
            (" { \"a b\" :\t[ 1 ,\r\n2 ] } ", r#"{"a b":[1,2]}"#),
            (r#"{ "a" : " \" \\" }"#, r#"{"a":" \" \\"}"#),
            (r#"[ "\\" , " ä " ]"#, r#"["\\"," ä "]"#),
            (r#"[ "\"\"" , "\\\" \"" ]"#, r#"["\"\"","\\\" \""]"#),
            (
                "{ \"a b\" : [ 1.50 ,\t\"x \\\" y\\\\\" ] ,\n\"c\":\"\\\\\" }",
                r#"{"a b":[1.50,"x \" y\\"],"c":"\\"}"#,
            ),
            (" 1 ", "1"),
        ] {
            assert_eq!(compact(json), compacted);
        }
    }
}
