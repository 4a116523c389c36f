//! The rotation of encryption keys.

use schemars::JsonSchema;
use serde::Deserialize;

use super::number::Number;

/// The rotation of encryption keys: in the background, what is encrypted with other configured keys is encrypted with the
/// active one.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RotationConfig {
    /// Whether this server does it. `keywright keys rotate` does it in any case.
    pub(crate) enabled: bool,
    /// How many versions are encrypted anew in one transaction; fewer where they have more than 16 MiB. Other writers wait for
    /// as long as it takes.
    pub(crate) batch_versions: Number<1, 1_000, 200>,
    /// The pause after each batch, in milliseconds, so that requests keep their speed.
    pub(crate) pause_milliseconds: Number<0, 60_000, 10>,
    /// How long after a look at the keys in use the next one is taken, in seconds. The first is taken at start.
    pub(crate) interval_seconds: Number<1, 86_400, 60>,
}

impl Default for RotationConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            batch_versions: Number::default(),
            pause_milliseconds: Number::default(),
            interval_seconds: Number::default(),
        }
    }
}
