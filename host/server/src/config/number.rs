//! Numbers with bounds.

use std::{borrow::Cow, time::Duration};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// A number from `MIN` to `MAX`, inclusive, with the default `DEFAULT`. A number out of range is rejected when the
/// configuration is read, with the name of the setting.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(try_from = "u64")]
pub(crate) struct Number<const MIN: u64, const MAX: u64, const DEFAULT: u64>(u64);

/// A number is out of range.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be from {min} to {max}, not {number}")]
pub(crate) struct OutOfBoundsError {
    min: u64,
    max: u64,
    number: u64,
}

impl<const MIN: u64, const MAX: u64, const DEFAULT: u64> Number<MIN, MAX, DEFAULT> {
    /// Returns the number as a count of items or bytes.
    pub(crate) fn count(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }

    /// Returns the number as a 32-bit count.
    pub(crate) fn count_u32(self) -> u32 {
        u32::try_from(self.0).unwrap_or(u32::MAX)
    }

    /// Returns the number as a duration in milliseconds.
    pub(crate) fn milliseconds(self) -> Duration {
        Duration::from_millis(self.0)
    }

    /// Returns the number as a duration in seconds.
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

/// An integer within the bounds; the schema of each setting adds the default.
impl<const MIN: u64, const MAX: u64, const DEFAULT: u64> JsonSchema for Number<MIN, MAX, DEFAULT> {
    fn schema_name() -> Cow<'static, str> {
        format!("Number from {MIN} to {MAX}").into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "integer", "minimum": MIN, "maximum": MAX})
    }
}

impl<const MIN: u64, const MAX: u64, const DEFAULT: u64> TryFrom<u64>
    for Number<MIN, MAX, DEFAULT>
{
    type Error = OutOfBoundsError;

    fn try_from(number: u64) -> Result<Self, OutOfBoundsError> {
        if (MIN..=MAX).contains(&number) {
            return Ok(Self(number));
        }
        Err(OutOfBoundsError {
            min: MIN,
            max: MAX,
            number,
        })
    }
}
