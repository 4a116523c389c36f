//! SHA-256 digests in manifests and references.

use std::{fmt, str::FromStr};

use aws_lc_rs::digest::{SHA256, digest};

/// A SHA-256 digest, written as `sha256:` and 64 lower-case hexadecimal digits (OCI image specification, "Digests").
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Digest(String);

/// A malformed digest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be sha256: followed by 64 lower-case hexadecimal digits")]
pub struct DigestMalformed;

impl Digest {
    /// Computes the digest of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        let digest = digest(&SHA256, bytes);
        let digits = digest.as_ref().iter().map(|byte| format!("{byte:02x}"));
        Self(digits.collect())
    }

    /// Returns the 64 hexadecimal digits.
    #[must_use]
    pub fn hexadecimal(&self) -> &str {
        &self.0
    }
}

impl FromStr for Digest {
    type Err = DigestMalformed;

    fn from_str(text: &str) -> Result<Self, DigestMalformed> {
        let digits = text.strip_prefix("sha256:").ok_or(DigestMalformed)?;
        let is_digit = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if digits.len() != DIGITS || !digits.bytes().all(is_digit) {
            return Err(DigestMalformed);
        }
        Ok(Self(digits.to_owned()))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "sha256:{}", self.0)
    }
}

/// The number of hexadecimal digits.
const DIGITS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parsing_and_display_round_trip() {
        let empty = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(Digest::of(b"").to_string(), empty);
        assert_eq!(empty.parse(), Ok(Digest::of(b"")));
    }

    #[test]
    fn anything_but_lower_case_sha256_is_rejected() {
        let digits = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        for text in [
            digits.to_owned(),
            format!("sha512:{digits}"),
            format!("sha256:{}", digits.to_uppercase()),
            format!("sha256:{digits}0"),
            format!("sha256:{}", &digits[1..]),
            format!("sha256:{}g", &digits[1..]),
        ] {
            assert_eq!(text.parse::<Digest>(), Err(DigestMalformed), "{text}");
        }
    }
}
