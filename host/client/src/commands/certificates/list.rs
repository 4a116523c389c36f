//! `keywright certificates list`.

use clap::Args;

use super::shown::ShownSummaries;
use crate::commands::{Context, Example, Failure, Outcome, Verb, help};

/// List certificates, what signed them and what they signed.
#[derive(Debug, Args)]
#[command(after_help = help(EXAMPLES))]
pub(super) struct List {
    /// The name of one certificate. Without it, all that the caller may read are listed.
    name: Option<String>,
}

impl Verb for List {
    async fn run(self, context: &Context) -> Result<Outcome, Failure> {
        let client = context.client()?;
        let certificates = match &self.name {
            Some(name) => vec![client.certificate(name).await?],
            None => client.certificates().await?,
        };
        context.output.show(&ShownSummaries(&certificates))?;
        Ok(Outcome::Done)
    }
}

/// What help shows.
pub(super) const EXAMPLES: &[Example] = &[
    Example {
        does: "List all certificates",
        line: "keywright certificates list",
        before: super::AUTHORITY_AND_LEAF,
    },
    Example {
        does: "See what an authority signed",
        line: "keywright certificates list /demo/root --output yaml",
        before: super::AUTHORITY_AND_LEAF,
    },
];
