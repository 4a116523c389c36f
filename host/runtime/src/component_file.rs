//! Reading component files.

use std::{
    borrow::Cow,
    fmt,
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::Arc,
};

use aws_lc_rs::digest;

use crate::refused::Refusal;

/// The source of a component.
#[derive(Clone, Debug)]
pub enum ComponentSource {
    /// Bytes that were already read.
    Bytes {
        /// The name used in messages.
        name: String,
        /// The WebAssembly component.
        bytes: Arc<[u8]>,
    },
    /// A file.
    File(PathBuf),
}

impl ComponentSource {
    /// Reads the component.
    ///
    /// # Errors
    /// If it does not exist, can't be read, is too large, or is a core module.
    pub fn read(&self) -> Result<Cow<'_, [u8]>, Refusal> {
        let bytes = match self {
            Self::Bytes { bytes, .. } => Cow::Borrowed(&**bytes),
            Self::File(path) => Cow::Owned(read_file(path)?),
        };
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

    /// Returns the name of a plugin without a configured name: the file name without its extension, or the name of the bytes.
    pub(crate) fn short_name(&self) -> String {
        match self {
            Self::Bytes { name, .. } => name.clone(),
            Self::File(path) => path
                .file_stem()
                .map_or_else(String::new, |stem| stem.to_string_lossy().into_owned()),
        }
    }
}

impl From<PathBuf> for ComponentSource {
    fn from(path: PathBuf) -> Self {
        Self::File(path)
    }
}

impl fmt::Display for ComponentSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes { name, .. } => formatter.write_str(name),
            Self::File(path) => path.display().fmt(formatter),
        }
    }
}

/// Reads a file, up to one byte more than [`COMPONENT_BYTES_MAX`].
fn read_file(path: &Path) -> Result<Vec<u8>, Refusal> {
    let unreadable = |cause: io::Error| match cause.kind() {
        io::ErrorKind::NotFound => Refusal::ComponentMissing,
        _ => Refusal::ComponentUnreadable(cause),
    };
    let file = File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    file.take(COMPONENT_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    Ok(bytes)
}

/// Returns the SHA-256 of a component after comparing it with the expected digest, if any.
///
/// # Errors
/// If they differ, or if the expected digest is malformed.
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

/// Encodes bytes as lower-case hexadecimal.
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

/// The maximum size of a component, in bytes.
pub const COMPONENT_BYTES_MAX: u64 = 64 * 1024 * 1024;
