//! The two forms of an export.

use clap::ValueEnum;

/// The form of an export.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A JSON object with a member `credentials`.
    Json,
    /// A YAML mapping with a top-level key `credentials`.
    #[default]
    Yaml,
}
