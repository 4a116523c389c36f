//! What verbs read: files, and texts that are JSON.

use std::{fs::File, io, path::Path};

use serde_json::{Map, Value};
use zeroize::Zeroizing;

use super::Failure;
pub(super) use crate::input::without_line_end;
use crate::{SecretJson, input::read_text, session::FileFailure};

/// Reads a text from a file, or from standard input where it is called `-`.
pub(super) fn text_of(path: &Path) -> Result<Zeroizing<String>, Failure> {
    if path == Path::new("-") {
        return read_text(io::stdin().lock(), &"standard input");
    }
    let file = File::open(path).map_err(|cause| FileFailure::new(path, "read", cause))?;
    read_text(file, &path.display())
}

/// The metadata that an argument holds: a JSON object, kept as it is written.
pub(super) fn metadata(argument: &str) -> Result<SecretJson, String> {
    object(argument)?;
    keywright_json::read(argument).map_err(|_| NO_OBJECT.to_owned())
}

/// The JSON object that an argument holds.
pub(super) fn object(argument: &str) -> Result<Map<String, Value>, String> {
    match keywright_json::read(argument) {
        Ok(Value::Object(members)) => Ok(members),
        _ => Err(NO_OBJECT.to_owned()),
    }
}

const NO_OBJECT: &str = "it must be a JSON object";
