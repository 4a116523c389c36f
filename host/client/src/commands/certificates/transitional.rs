//! `keywright certificates transitional`.

use clap::Args;

use super::shown::ShownVersions;
use crate::{
    TransitionalVersion,
    commands::{Completion, Context, Example, Failure, Verb, help},
};

/// Move or clear the transitional flag of a certificate.
///
/// Shows the active version and the transitional version after the change.
#[derive(Debug, Args)]
#[command(after_help = help(EXAMPLES))]
pub(super) struct Transitional {
    /// Name of the certificate.
    name: String,
    #[command(flatten)]
    to: To,
}

/// The new transitional version.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct To {
    /// Id of the version to make transitional.
    #[arg(long, value_name = "ID")]
    version: Option<String>,
    /// Make the latest version transitional.
    #[arg(long)]
    latest: bool,
    /// Clear the flag, so that no version is transitional.
    #[arg(long)]
    clear: bool,
}

impl Verb for Transitional {
    async fn run(self, context: &Context) -> Result<Completion, Failure> {
        let client = context.client()?;
        let id = client.certificate(&self.name).await?.id;
        let to = match &self.to.version {
            Some(version) => TransitionalVersion::Id(version),
            None if self.to.latest => TransitionalVersion::Latest,
            None => TransitionalVersion::None,
        };
        let versions = client.move_transitional_version(&id, to).await?;
        context.output.show(&ShownVersions(&versions))?;
        Ok(Completion::Full)
    }
}

pub(super) const EXAMPLES: &[Example] = &[
    Example {
        does: "Return the latest version, but sign with the one before it",
        line: "keywright certificates transitional /demo/root --latest",
        before: TWO_VERSIONS,
    },
    Example {
        does: "Return only the active version",
        line: "keywright certificates transitional /demo/root --clear",
        before: TWO_VERSIONS,
    },
];

const TWO_VERSIONS: &[&str] = &[
    super::AUTHORITY,
    "keywright certificates regenerate /demo/root",
];
