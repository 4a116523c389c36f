//! Numbers with bounds.

use std::time::Duration;

use serde::Deserialize;

/// A number from `MIN` to `MAX`, both included, and `DEFAULT` where nothing is said. Another one is refused while the
/// configuration is read, which names the setting.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "u64")]
pub(crate) struct Number<const MIN: u64, const MAX: u64, const DEFAULT: u64>(u64);

/// Why a number is not taken.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("it must be from {min} to {max}, and not {number}")]
pub(crate) struct OutOfBounds {
    min: u64,
    max: u64,
    number: u64,
}

impl<const MIN: u64, const MAX: u64, const DEFAULT: u64> Number<MIN, MAX, DEFAULT> {
    /// The number as a count of things or of bytes.
    pub(crate) fn count(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }

    /// The number as a count, for those who count in 32 bits.
    pub(crate) fn count_u32(self) -> u32 {
        u32::try_from(self.0).unwrap_or(u32::MAX)
    }

    /// The number as a time, if it is one of milliseconds.
    pub(crate) fn milliseconds(self) -> Duration {
        Duration::from_millis(self.0)
    }

    /// The number as a time, if it is one of seconds.
    pub(crate) fn seconds(self) -> Duration {
        Duration::from_secs(self.0)
    }
}

impl<const MIN: u64, const MAX: u64, const DEFAULT: u64> Default for Number<MIN, MAX, DEFAULT> {
    fn default() -> Self {
        const { assert!(MIN <= DEFAULT && DEFAULT <= MAX) };
        Self(DEFAULT)
    }
}

impl<const MIN: u64, const MAX: u64, const DEFAULT: u64> TryFrom<u64>
    for Number<MIN, MAX, DEFAULT>
{
    type Error = OutOfBounds;

    fn try_from(number: u64) -> Result<Self, OutOfBounds> {
        if (MIN..=MAX).contains(&number) {
            return Ok(Self(number));
        }
        Err(OutOfBounds {
            min: MIN,
            max: MAX,
            number,
        })
    }
}
