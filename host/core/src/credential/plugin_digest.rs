//! The digest of a plugin.

/// SHA-256 of a plugin's component, in lower-case hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginDigest(String);

/// A text is not a digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a digest must be {EXPECTED}")]
pub struct DigestMalformed;

impl PluginDigest {
    /// Parses 64 hexadecimal digits in any case, with or without the prefix `sha256:`.
    ///
    /// # Errors
    /// [`DigestMalformed`].
    pub fn parse(text: &str) -> Result<Self, DigestMalformed> {
        let digits = text.strip_prefix(PREFIX).unwrap_or(text);
        if digits.len() != DIGITS || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(DigestMalformed);
        }
        Ok(Self(digits.to_ascii_lowercase()))
    }

    /// Returns the digits in lower case, their stored form.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl DigestMalformed {
    /// The expected form, for error messages.
    pub const EXPECTED: &str = EXPECTED;
}

const EXPECTED: &str = "sha256: followed by 64 hexadecimal digits";
const PREFIX: &str = "sha256:";
const DIGITS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_parsed_with_and_without_prefix_in_any_case() {
        let digits = "0123456789abcdef".repeat(4);
        for text in [
            digits.clone(),
            digits.to_uppercase(),
            format!("sha256:{digits}"),
            format!("sha256:{}", digits.to_uppercase()),
        ] {
            assert_eq!(PluginDigest::parse(&text).unwrap().as_str(), digits);
        }
    }

    #[test]
    fn malformed_digests_are_rejected() {
        let digits = "0".repeat(64);
        for text in [
            "",
            "sha256:",
            &digits[1..],
            &format!("{digits}0"),
            &format!("sha512:{digits}"),
            &format!("SHA256:{digits}"),
            &format!("sha256:sha256:{digits}"),
            &format!("{}g", &digits[1..]),
            &format!("{}ä", &digits[2..]),
        ] {
            assert_eq!(PluginDigest::parse(text), Err(DigestMalformed), "{text}");
        }
    }
}
