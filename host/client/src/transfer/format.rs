//! The formats of an export.

use clap::ValueEnum;

/// The format of an export.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// JSON object with a field `credentials`.
    Json,
    /// YAML mapping with a key `credentials`.
    #[default]
    Yaml,
}
