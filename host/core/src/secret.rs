//! Secret text.

use std::fmt;

use zeroize::Zeroizing;

/// Secret text: zeroed when dropped, redacted in `Debug`, with neither `Display` nor `Serialize`.
///
/// [`Secret::expose`] is the only access to its content.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Wraps secret text.
    #[must_use]
    pub fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    /// Exposes the text. Every call is a potential leak.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_redacts_the_text() {
        assert!(!format!("{:?}", Secret::new("hunter2".to_owned())).contains("hunter2"));
    }
}
