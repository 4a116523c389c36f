//! Texts that are read: from files, and from standard input.

use std::{fmt::Display, io::Read};

use zeroize::Zeroizing;

use crate::commands::Failure;

/// Reads a text to its end. The name is for people.
///
/// # Errors
/// When it can't be read, is not UTF-8, or is longer than [`BYTES_MAX`].
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

/// The text without the line end after it, which editors add.
pub(crate) fn without_line_end(text: &str) -> &str {
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.strip_suffix('\r').unwrap_or(text)
}

/// The longest text that is read: the largest body that a server can be configured to take (`server.request_bytes_max`). What
/// is too large for a server that takes less, that server says.
const BYTES_MAX: u64 = 256 * 1024 * 1024;

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn a_text_may_be_as_long_as_the_bound_and_no_longer() {
        let read = |text: &str| read_at_most(text.as_bytes(), &"it", 8);
        assert_eq!(read("12345678").unwrap().len(), 8);
        let refused = read("123456789").unwrap_err().to_string();
        assert_eq!(refused, "it is longer than 8 bytes");
    }

    #[test]
    fn the_bound_of_texts_is_that_of_the_largest_body() {
        let read = |length: u64| read_text(io::repeat(b'x').take(length), &"it");
        assert_eq!(read(2 * 1024 * 1024).unwrap().len(), 2 * 1024 * 1024);
        let refused = read(256 * 1024 * 1024 + 1).unwrap_err().to_string();
        assert_eq!(refused, "it is longer than 268435456 bytes");
    }

    #[test]
    fn one_line_end_is_left_out() {
        for (text, expected) in [("a\n", "a"), ("a\r\n", "a"), ("a\n\n", "a\n"), ("a", "a")] {
            assert_eq!(without_line_end(text), expected);
        }
    }
}
