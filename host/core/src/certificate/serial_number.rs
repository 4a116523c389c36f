//! The serial number of a certificate.

use std::fmt;

/// The serial number of a certificate (RFC 5280, section 4.1.2.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SerialNumber(Vec<u8>);

impl SerialNumber {
    /// Wraps the content octets of the DER integer, which may begin with a zero octet for the sign.
    #[must_use]
    pub fn new(mut octets: Vec<u8>) -> Self {
        let zeros = octets.iter().take_while(|octet| **octet == 0).count();
        octets.drain(..zeros.min(octets.len().saturating_sub(1)));
        Self(octets)
    }

    /// Returns the octets, without leading zeros.
    #[must_use]
    pub fn octets(&self) -> &[u8] {
        &self.0
    }
}

/// Lower-case hexadecimal, two digits for each octet.
impl fmt::Display for SerialNumber {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|octet| write!(formatter, "{octet:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leading_zeros_are_dropped_and_zero_keeps_one_octet() {
        for (octets, shown) in [
            (&[0x00, 0x8f, 0x01][..], "8f01"),
            (&[0x01, 0x00], "0100"),
            (&[0x00, 0x00], "00"),
            (&[], ""),
        ] {
            assert_eq!(SerialNumber::new(octets.to_vec()).to_string(), shown);
        }
    }
}
