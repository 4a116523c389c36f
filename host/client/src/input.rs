//! Texts that are read: from files, and from standard input.

use std::{fmt::Display, io::Read};

use zeroize::Zeroizing;

use crate::commands::Failure;

/// Reads a text to its end. The name is for people.
///
/// # Errors
/// When it can't be read, is not UTF-8, or is longer than a mebibyte.
pub(crate) fn read_text(
    source: impl Read,
    name: &dyn Display,
) -> Result<Zeroizing<String>, Failure> {
    let mut text = Zeroizing::new(String::new());
    let read = source.take(BYTES_MAX + 1).read_to_string(&mut text);
    let bytes = read.map_err(|cause| Failure::Other(format!("reading {name}: {cause}")))?;
    if bytes as u64 > BYTES_MAX {
        return Err(Failure::Other(format!(
            "{name} is longer than {BYTES_MAX} bytes"
        )));
    }
    Ok(text)
}

/// The text without the line end after it, which editors add.
pub(crate) fn without_line_end(text: &str) -> &str {
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.strip_suffix('\r').unwrap_or(text)
}

/// The longest text that is read: more than any server takes.
const BYTES_MAX: u64 = 1024 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_may_have_a_mebibyte_and_no_more() {
        let text = "x".repeat(1024 * 1024 + 1);
        let read = |length: usize| read_text(text.as_bytes().take(length as u64), &"it");
        assert_eq!(read(1024 * 1024).unwrap().len(), 1024 * 1024);
        let refused = read(1024 * 1024 + 1).unwrap_err().to_string();
        assert_eq!(refused, "it is longer than 1048576 bytes");
    }

    #[test]
    fn one_line_end_is_left_out() {
        for (text, expected) in [("a\n", "a"), ("a\r\n", "a"), ("a\n\n", "a\n"), ("a", "a")] {
            assert_eq!(without_line_end(text), expected);
        }
    }
}
