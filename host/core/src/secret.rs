//! Secret text.

use std::{fmt, mem};

use zeroize::optimization_barrier;

/// Secret text: zeroed when dropped, redacted in `Debug`, with neither `Display` nor `Serialize`.
///
/// [`Secret::expose`] is the only access to its content.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps secret text.
    pub fn new(text: String) -> Self {
        Self(text)
    }

    /// Exposes the text. Every call is a potential leak.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl Drop for Secret {
    /// Zeroes the whole buffer at once. `Zeroizing<String>` writes byte by byte, which takes several times as long.
    fn drop(&mut self) {
        let mut bytes = mem::take(&mut self.0).into_bytes();
        bytes.clear();
        bytes.resize(bytes.capacity(), 0);
        optimization_barrier(bytes.as_slice());
    }
}

#[cfg(test)]
impl Secret {
    /// Returns the size of its buffer, in bytes.
    pub(crate) fn capacity(&self) -> usize {
        self.0.capacity()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret(redacted)")
    }
}
