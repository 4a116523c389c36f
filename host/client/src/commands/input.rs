//! Reads files and JSON arguments.

use std::{fs::File, io, path::Path};

use serde_json::{Map, Value};
use zeroize::Zeroizing;

use super::Failure;
pub(super) use crate::input::without_line_end;
use crate::{SecretJson, input::read_text, session::FileFailure};

/// Reads a text from a file, or from standard input if the path is `-`.
pub(super) fn text_of(path: &Path) -> Result<Zeroizing<String>, Failure> {
    if path == Path::new("-") {
        return read_text(io::stdin().lock(), &"standard input");
    }
    let file = File::open(path).map_err(|cause| FileFailure::new(path, "read", cause))?;
    read_text(file, &path.display())
}

/// Parses metadata from an argument: a JSON object, kept verbatim.
pub(super) fn metadata(argument: &str) -> Result<SecretJson, String> {
    object(argument)?;
    keywright_json::read(argument).map_err(|_| NO_OBJECT.to_owned())
}

/// Parses a JSON object from an argument.
pub(super) fn object(argument: &str) -> Result<Map<String, Value>, String> {
    match keywright_json::read(argument) {
        Ok(Value::Object(fields)) => Ok(fields),
        _ => Err(NO_OBJECT.to_owned()),
    }
}

const NO_OBJECT: &str = "must be a JSON object";
