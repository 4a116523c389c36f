//! Digests, as manifests and references have them.

use std::{fmt, str::FromStr};

use aws_lc_rs::digest::{SHA256, digest};

/// A SHA-256, in its written form `sha256:` and 64 lower-case hexadecimal digits (OCI image specification, "Digests"). No
/// other algorithm is taken.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Digest(String);

/// A text that is no digest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a digest is sha256: and 64 lower-case hexadecimal digits")]
pub struct DigestMalformed;

impl Digest {
    /// The digest of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        let digest = digest(&SHA256, bytes);
        let digits = digest.as_ref().iter().map(|byte| format!("{byte:02x}"));
        Self(digits.collect())
    }

    /// The 64 hexadecimal digits.
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

/// The hexadecimal digits of a SHA-256.
const DIGITS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_written_as_it_is_read() {
        let empty = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(Digest::of(b"").to_string(), empty);
        assert_eq!(empty.parse(), Ok(Digest::of(b"")));
    }

    #[test]
    fn what_is_no_sha256_in_lower_case_is_refused() {
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
