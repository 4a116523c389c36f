//! Reads texts from files and standard input.

use std::{fmt::Display, io::Read};

use zeroize::Zeroizing;

use crate::commands::Failure;

/// Reads a whole text. `name` is for error messages.
///
/// # Errors
/// When the text can't be read, is not UTF-8, or is longer than [`BYTES_MAX`].
pub(crate) fn read_text(
    source: impl Read,
    name: &dyn Display,
) -> Result<Zeroizing<String>, Failure> {
    read_at_most(source, name, BYTES_MAX)
}

fn read_at_most(
    source: impl Read,
    name: &dyn Display,
    bytes_max: u64,
) -> Result<Zeroizing<String>, Failure> {
    let mut text = Zeroizing::new(String::new());
    let read = source.take(bytes_max + 1).read_to_string(&mut text);
    let bytes = read.map_err(|cause| Failure::Other(format!("reading {name}: {cause}")))?;
    if bytes as u64 > bytes_max {
        return Err(Failure::Other(format!(
            "{name} is longer than {bytes_max} bytes"
        )));
    }
    Ok(text)
}

/// Removes one trailing newline, which editors add.
pub(crate) fn without_line_end(text: &str) -> &str {
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.strip_suffix('\r').unwrap_or(text)
}

/// The maximum length of a text: the largest value of a server's `server.request_bytes_max`. A server with a lower limit refuses
/// texts above it.
const BYTES_MAX: u64 = 256 * 1024 * 1024;

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn texts_above_the_limit_are_refused() {
        let read = |text: &str| read_at_most(text.as_bytes(), &"it", 8);
        assert_eq!(read("12345678").unwrap().len(), 8);
        let refused = read("123456789").unwrap_err().to_string();
        assert_eq!(refused, "it is longer than 8 bytes");
    }

    #[test]
    fn the_limit_of_texts_is_the_largest_request_body() {
        let read = |length: u64| read_text(io::repeat(b'x').take(length), &"it");
        assert_eq!(read(2 * 1024 * 1024).unwrap().len(), 2 * 1024 * 1024);
        let refused = read(256 * 1024 * 1024 + 1).unwrap_err().to_string();
        assert_eq!(refused, "it is longer than 268435456 bytes");
    }

    #[test]
    fn one_trailing_newline_is_removed() {
        for (text, expected) in [("a\n", "a"), ("a\r\n", "a"), ("a\n\n", "a\n"), ("a", "a")] {
            assert_eq!(without_line_end(text), expected);
        }
    }
}
