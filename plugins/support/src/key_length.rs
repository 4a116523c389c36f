use serde::{Deserialize, Serialize};

use crate::{Fields, Violation};

/// The length of an RSA modulus, in bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "u32", try_from = "u32")]
pub enum KeyLength {
    /// 2048 bits.
    #[default]
    Bits2048 = 2048,
    /// 3072 bits.
    Bits3072 = 3072,
    /// 4096 bits.
    Bits4096 = 4096,
}

impl KeyLength {
    /// Takes the parameter `key_length` from the caller's parameters.
    pub fn take(fields: &mut Fields) -> Result<Self, Violation> {
        match fields.take_integer(NAME)? {
            None => Ok(Self::default()),
            Some(bits) => Self::of_bits(bits).ok_or_else(|| Violation::of(NAME, RULE)),
        }
    }

    /// Returns the length with this number of bits, or `None` if it is not one of the three.
    fn of_bits(bits: i64) -> Option<Self> {
        LENGTHS.into_iter().find(|length| *length as i64 == bits)
    }

    /// Returns the shortest length of at least this number of bits, if there is one.
    pub fn covering(bits: u32) -> Option<Self> {
        LENGTHS.into_iter().find(|length| *length as u32 >= bits)
    }

    /// Returns the shortest length of at least this number of bits, or else the longest length.
    pub fn covering_or_longest(bits: u32) -> Self {
        Self::covering(bits).unwrap_or(Self::Bits4096)
    }

    /// Returns the length in bits.
    pub fn bits(self) -> usize {
        self as usize
    }
}

impl From<KeyLength> for u32 {
    fn from(length: KeyLength) -> Self {
        length as Self
    }
}

impl TryFrom<u32> for KeyLength {
    type Error = &'static str;

    fn try_from(bits: u32) -> Result<Self, Self::Error> {
        Self::of_bits(i64::from(bits)).ok_or(RULE)
    }
}

/// All lengths, ascending.
const LENGTHS: [KeyLength; 3] = [
    KeyLength::Bits2048,
    KeyLength::Bits3072,
    KeyLength::Bits4096,
];

const NAME: &str = "key_length";
const RULE: &str = "must be 2048, 3072 or 4096";
