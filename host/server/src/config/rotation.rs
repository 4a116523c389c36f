//! The rotation of encryption keys.

use schemars::JsonSchema;
use serde::Deserialize;

use super::number::Number;

/// The rotation of encryption keys: values encrypted with other configured keys are re-encrypted with the active key,
/// in the background.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RotationConfig {
    /// Whether this server rotates keys. `keywright keys rotate` does so in any case.
    pub(crate) enabled: bool,
    /// Number of versions to re-encrypt in one transaction; fewer if they exceed 16 MiB together. Other writers wait
    /// until the transaction is complete.
    pub(crate) batch_versions: Number<1, 1_000, 200>,
    /// The pause after each batch, which keeps requests fast.
    pub(crate) pause_milliseconds: Number<0, 60_000, 10>,
    /// Interval between checks of the keys in use. The first check is at start-up.
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
