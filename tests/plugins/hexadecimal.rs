//! Bytes as hexadecimal digits.

use std::fmt::Write;

/// Encodes bytes in hexadecimal, in lower case.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut digits, byte| {
        // Writing to a string does not fail.
        let _ = write!(digits, "{byte:02x}");
        digits
    })
}
