//! `keywright certificates versions`.

use clap::Args;

use super::shown::ShownVersions;
use crate::commands::{Context, Example, Failure, Outcome, Verb, help};

/// List the versions of a certificate, newest first. Private keys are left out: `keywright get` has them.
#[derive(Debug, Args)]
#[command(after_help = help(EXAMPLES))]
pub(super) struct Versions {
    /// The certificate's name.
    name: String,
    /// List the version in use and the transitional one alone.
    #[arg(long)]
    current: bool,
}

impl Verb for Versions {
    async fn run(self, context: &Context) -> Result<Outcome, Failure> {
        let client = context.client()?;
        let id = client.certificate(&self.name).await?.id;
        let versions = if self.current {
            client.current_certificate_versions(&id).await?
        } else {
            client.certificate_versions(&id).await?
        };
        context.output.show(&ShownVersions(&versions))?;
        Ok(Outcome::Done)
    }
}

/// What help shows.
pub(super) const EXAMPLES: &[Example] = &[
    Example {
        does: "List all versions of a certificate",
        line: "keywright certificates versions /demo/web",
        before: super::AUTHORITY_AND_LEAF,
    },
    Example {
        does: "See which version signs, and which is in transition",
        line: "keywright certificates versions /demo/root --current",
        before: super::AUTHORITY_AND_LEAF,
    },
];
