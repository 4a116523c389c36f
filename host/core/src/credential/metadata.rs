//! Free JSON that a caller keeps beside one version.

use crate::Secret;

/// The longest metadata, in characters of JSON text.
pub const METADATA_CHARACTERS_MAX: usize = 7_000;

/// The metadata of one version: JSON text within the limit.
#[derive(Clone, Debug)]
pub struct Metadata(Secret);

impl Metadata {
    /// Takes metadata that a caller sent; JSON `null` is no metadata.
    ///
    /// # Errors
    /// When the text is longer than [`METADATA_CHARACTERS_MAX`].
    pub fn parse(json: &serde_json::Value) -> Result<Option<Self>, MetadataTooLong> {
        if json.is_null() {
            return Ok(None);
        }
        let text = Secret::new(json.to_string());
        if text.expose().chars().count() > METADATA_CHARACTERS_MAX {
            return Err(MetadataTooLong);
        }
        Ok(Some(Self(text)))
    }

    pub(crate) fn from_stored(text: Secret) -> Self {
        Self(text)
    }

    /// The metadata as JSON text.
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
    use serde_json::json;

    use super::*;

    #[test]
    fn null_is_no_metadata() {
        assert!(Metadata::parse(&serde_json::Value::Null).unwrap().is_none());
    }

    #[test]
    fn the_longest_metadata_is_kept_and_one_more_character_is_refused() {
        let quotes = 2;
        let longest = "ä".repeat(METADATA_CHARACTERS_MAX - quotes);
        assert!(Metadata::parse(&json!(longest)).unwrap().is_some());
        assert!(Metadata::parse(&json!(format!("{longest}x"))).is_err());
    }
}
