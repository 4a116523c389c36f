//! Component files, as they are on disk.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

use aws_lc_rs::digest;

use crate::refused::Refusal;

/// Reads a component.
///
/// # Errors
/// When there is none, it can't be read, is too large, or is no component but a module.
pub(crate) fn read_component(path: &Path) -> Result<Vec<u8>, Refusal> {
    let unreadable = |cause: io::Error| match cause.kind() {
        io::ErrorKind::NotFound => Refusal::ComponentMissing,
        _ => Refusal::ComponentUnreadable(cause),
    };
    let file = File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    file.take(COMPONENT_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length > COMPONENT_BYTES_MAX) {
        return Err(Refusal::ComponentTooLarge {
            bytes_max: COMPONENT_BYTES_MAX,
        });
    }
    if bytes.starts_with(b"\0asm\x01\0\0\0") {
        return Err(Refusal::ModuleNotComponent);
    }
    Ok(bytes)
}

/// The SHA-256 of a component, when it is the one that is expected.
///
/// # Errors
/// When it is another one, or what is expected is none.
pub(crate) fn checked_digest(bytes: &[u8], expected: Option<&str>) -> Result<String, Refusal> {
    let digest = digest::digest(&digest::SHA256, bytes);
    let found = hexadecimal(digest.as_ref());
    let Some(expected) = expected else {
        return Ok(found);
    };
    let is_digest = expected.len() == found.len()
        && expected
            .bytes()
            .all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
    if !is_digest {
        return Err(Refusal::DigestMalformed);
    }
    if expected != found {
        return Err(Refusal::DigestDiffers {
            expected: expected.to_owned(),
            found,
        });
    }
    Ok(found)
}

/// Bytes as hexadecimal digits, in lower case.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut digits, byte| {
        let nibbles = [byte >> 4, byte & 15];
        digits.extend(
            nibbles
                .iter()
                .filter_map(|nibble| char::from_digit(u32::from(*nibble), 16)),
        );
        digits
    })
}

/// The largest component file, in bytes.
const COMPONENT_BYTES_MAX: u64 = 64 * 1024 * 1024;
