//! Metadata: arbitrary JSON that a caller stores with a version.

use crate::Secret;

/// The maximum length of metadata, in characters of JSON text.
pub const METADATA_CHARACTERS_MAX: usize = 7_000;

/// The metadata of one version: JSON text within the limit.
#[derive(Clone, Debug)]
pub struct Metadata(Secret);

impl Metadata {
    /// Wraps a caller's metadata, JSON text without insignificant whitespace. It is stored as written, so that numbers keep
    /// all their digits.
    ///
    /// # Errors
    /// If the text is longer than [`METADATA_CHARACTERS_MAX`].
    pub fn parse(json: Secret) -> Result<Self, MetadataTooLong> {
        if json.expose().chars().count() > METADATA_CHARACTERS_MAX {
            return Err(MetadataTooLong);
        }
        Ok(Self(json))
    }

    pub(crate) fn from_stored(text: Secret) -> Self {
        Self(text)
    }

    /// Returns the metadata as JSON text.
    #[must_use]
    pub fn json(&self) -> &Secret {
        &self.0
    }
}

/// Metadata longer than [`METADATA_CHARACTERS_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("metadata may have at most {METADATA_CHARACTERS_MAX} characters")]
pub struct MetadataTooLong;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_past_the_maximum_length_is_rejected() {
        let around = 2;
        let longest = "ä".repeat(METADATA_CHARACTERS_MAX - around);
        let quoted = |text: &str| Secret::new(format!("\"{text}\""));
        let kept = Metadata::parse(quoted(&longest)).unwrap();
        assert_eq!(kept.json().expose(), quoted(&longest).expose());
        assert!(Metadata::parse(quoted(&format!("{longest}x"))).is_err());
    }
}
