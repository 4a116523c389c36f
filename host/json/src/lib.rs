//! Reads JSON that comes from outside: requests, tokens, plugins, files, the database and other servers.
//!
//! The host's production code parses JSON only with this crate. `serde_json` alone is not safe for untrusted text:
//!
//! - With its feature `raw_value`, which is on for the whole program as soon as one crate names it, parsing a
//!   [`serde_json::Value`] parses the string under the key `$serde_json::private::RawValue` again, with a fresh recursion
//!   limit. A few levels of that overflow the stack, and one level puts a number where a schema saw an object.
//! - The last of several equal keys wins silently, so two readers can understand the same text differently.
//! - Text that is skipped (`RawValue`, `IgnoredAny`) has no depth limit, and a later parser of it starts a new count.
//!
//! Two ways of reading are safe:
//!
//! - [`read`] and [`read_bytes`] check the whole text and then parse it into any type. [`check`] returns the proof of the
//!   check, [`Checked`], to parse parts of a text without checking them again.
//! - [`raw`], [`fields`], [`items`] and [`text`] split a text by one level without parsing the parts. They need no
//!   check, because they never recurse and never build a `Value`.

mod check;
mod object;
mod parts;

pub use check::{Checked, check, check_response, read, read_bytes};
pub use object::deserialize_object;
pub use parts::{fields, items, raw, text};

use serde_json::error::Category;

/// The deepest nesting of arrays and objects in a document, in levels. `[]` has one level.
pub const DEPTH_MAX: usize = 128;

/// The deepest nesting in a response of this API, in levels: a document of [`DEPTH_MAX`] levels whose innermost reference
/// was replaced by a value of as many, and the objects and arrays that the API puts around it.
pub const RESPONSE_DEPTH_MAX: usize = 2 * DEPTH_MAX + 8;

/// No key of an object may start with this text, in any spelling: such keys have a special meaning in `serde_json`.
pub const RESERVED_KEY_PREFIX: &str = "$serde_json::private::";

/// Converts bytes, which must be UTF-8, to text.
///
/// # Errors
/// [`JsonError::NotUtf8`].
pub fn utf8(bytes: &[u8]) -> Result<&str, JsonError> {
    str::from_utf8(bytes).map_err(|_| JsonError::NotUtf8)
}

/// Why a text was refused. Neither `Display` nor `Debug` shows any of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JsonError {
    /// An object has a key twice, possibly in different spellings.
    #[error("an object has a duplicate key")]
    DuplicateKey,
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
    #[error("invalid JSON: it is not UTF-8")]
    NotUtf8,
    /// A key starts with [`RESERVED_KEY_PREFIX`].
    #[error("a key starts with {RESERVED_KEY_PREFIX}, which is reserved")]
    ReservedKey,
    /// Arrays and objects are nested deeper than [`crate::DEPTH_MAX`], or [`crate::RESPONSE_DEPTH_MAX`] in a response.
    #[error("arrays and objects are nested too deep")]
    TooDeep,
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
