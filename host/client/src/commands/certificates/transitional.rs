//! `keywright certificates transitional`.

use clap::Args;

use super::shown::ShownVersions;
use crate::{
    TransitionalVersion,
    commands::{Context, Example, Failure, Outcome, Verb, help},
};

/// Move the transitional flag of a certificate to one of its versions, or clear it. Shows the versions that are then in use.
#[derive(Debug, Args)]
#[command(after_help = help(EXAMPLES))]
pub(super) struct Transitional {
    /// The certificate's name.
    name: String,
    #[command(flatten)]
    to: To,
}

/// Where the flag goes.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct To {
    /// To the version with this id.
    #[arg(long, value_name = "ID")]
    version: Option<String>,
    /// To the newest version.
    #[arg(long)]
    latest: bool,
    /// Nowhere: no version is transitional any more.
    #[arg(long)]
    clear: bool,
}

impl Verb for Transitional {
    async fn run(self, context: &Context) -> Result<Outcome, Failure> {
        let client = context.client()?;
        let id = client.certificate(&self.name).await?.id;
        let to = match &self.to.version {
            Some(version) => TransitionalVersion::Id(version),
            None if self.to.latest => TransitionalVersion::Latest,
            None => TransitionalVersion::None,
        };
        let versions = client.move_transitional_version(&id, to).await?;
        context.output.show(&ShownVersions(&versions))?;
        Ok(Outcome::Done)
    }
}

/// What help shows.
pub(super) const EXAMPLES: &[Example] = &[
    Example {
        does: "Hand out the newest version beside the one before it, which signs",
        line: "keywright certificates transitional /demo/root --latest",
        before: TWO_VERSIONS,
    },
    Example {
        does: "Hand out nothing but the version in use",
        line: "keywright certificates transitional /demo/root --clear",
        before: TWO_VERSIONS,
    },
];

const TWO_VERSIONS: &[&str] = &[
    super::AUTHORITY,
    "keywright certificates regenerate /demo/root",
];
