//! Components, as they were built.

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

/// Where a component comes from.
#[derive(Clone, Debug)]
pub enum ComponentSource {
    /// It is here, read by somebody else.
    Bytes {
        /// What it is called where something is said of it.
        name: String,
        /// The component, WebAssembly.
        bytes: Arc<[u8]>,
    },
    /// A file.
    File(PathBuf),
}

impl ComponentSource {
    /// Reads the component.
    ///
    /// # Errors
    /// When there is none, it can't be read, is too large, or is no component but a module.
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

    /// What the plugin is called before it has a name: as the file without its extension, or the whole of another name.
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

/// Reads a file, and not much more of it than a component may have.
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

/// The largest component, in bytes.
pub const COMPONENT_BYTES_MAX: u64 = 64 * 1024 * 1024;
