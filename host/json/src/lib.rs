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
mod error;
mod object;
mod parts;
mod scalars;

pub use check::{Checked, check, check_response};
pub use error::JsonError;
pub use object::deserialize_object;
pub use parts::{fields, items, raw, text};

use serde::Deserialize;

/// The deepest nesting of arrays and objects in a document, in levels. `[]` has one level.
pub const DEPTH_MAX: usize = 128;

/// The deepest nesting in a response of this API, in levels: a document of [`DEPTH_MAX`] levels whose innermost reference
/// was replaced by a value of as many, and the objects and arrays that the API puts around it.
pub const RESPONSE_DEPTH_MAX: usize = 2 * DEPTH_MAX + 8;

/// No key of an object may start with this text, in any spelling: such keys have a special meaning in `serde_json`.
pub const RESERVED_KEY_PREFIX: &str = "$serde_json::private::";

/// Checks a text and parses it.
///
/// # Errors
/// If the check fails, or the text does not fit the type.
pub fn read<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, JsonError> {
    check(text)?.read()
}

/// Checks bytes, which must be UTF-8, and parses them.
///
/// # Errors
/// As [`read`].
pub fn read_bytes<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, JsonError> {
    read(utf8(bytes)?)
}

/// Converts bytes, which must be UTF-8, to text.
///
/// # Errors
/// [`JsonError::NotUtf8`].
pub fn utf8(bytes: &[u8]) -> Result<&str, JsonError> {
    str::from_utf8(bytes).map_err(|_| JsonError::NotUtf8)
}
