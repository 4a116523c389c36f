//! What verbs read: files, and texts that are JSON.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

use serde_json::{Map, Value};
use zeroize::Zeroizing;

use super::Failure;
use crate::session::FileFailure;

/// Reads a text from a file, or from standard input where it is called `-`.
pub(super) fn text_of(path: &Path) -> Result<Zeroizing<String>, Failure> {
    let failed = |cause| FileFailure::new(path, "read", cause);
    let mut text = Zeroizing::new(String::new());
    let read = if path == Path::new("-") {
        io::stdin()
            .lock()
            .take(BYTES_MAX + 1)
            .read_to_string(&mut text)
    } else {
        let file = File::open(path).map_err(failed)?;
        file.take(BYTES_MAX + 1).read_to_string(&mut text)
    };
    if read.map_err(failed)? as u64 > BYTES_MAX {
        return Err(Failure::Other(format!(
            "{} is longer than {BYTES_MAX} bytes",
            path.display()
        )));
    }
    Ok(text)
}

/// The text without the line end after it, which editors add.
pub(super) fn without_line_end(text: &str) -> &str {
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.strip_suffix('\r').unwrap_or(text)
}

/// The JSON object that an argument holds.
pub(super) fn object(argument: &str) -> Result<Map<String, Value>, String> {
    match serde_json::from_str(argument) {
        Ok(Value::Object(members)) => Ok(members),
        _ => Err("it must be a JSON object".to_owned()),
    }
}

/// The longest text that is read: more than any server takes.
const BYTES_MAX: u64 = 1024 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_may_have_a_mebibyte_and_no_more() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("text");
        std::fs::write(&path, "x".repeat(1024 * 1024)).unwrap();
        assert_eq!(text_of(&path).unwrap().len(), 1024 * 1024);
        std::fs::write(&path, "x".repeat(1024 * 1024 + 1)).unwrap();
        assert!(text_of(&path).is_err());
    }

    #[test]
    fn one_line_end_is_left_out() {
        for (text, expected) in [("a\n", "a"), ("a\r\n", "a"), ("a\n\n", "a\n"), ("a", "a")] {
            assert_eq!(without_line_end(text), expected);
        }
    }
}
