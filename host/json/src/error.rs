use serde_json::error::Category;

use crate::RESERVED_KEY_PREFIX;

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
