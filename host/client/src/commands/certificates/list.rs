//! `keywright certificates list`.

use clap::Args;

use super::shown::ShownSummaries;
use crate::commands::{Completion, Context, Example, Failure, Verb, help};

/// List certificates with their signing CA and what they signed.
#[derive(Debug, Args)]
#[command(after_help = help(EXAMPLES))]
pub(super) struct List {
    /// Name of one certificate. Default: all certificates that you can read.
    name: Option<String>,
}

impl Verb for List {
    async fn run(self, context: &Context) -> Result<Completion, Failure> {
        let client = context.client()?;
        let certificates = match &self.name {
            Some(name) => vec![client.certificate(name).await?],
            None => client.certificates().await?,
        };
        context.output.show(&ShownSummaries(&certificates))?;
        Ok(Completion::Full)
    }
}

pub(super) const EXAMPLES: &[Example] = &[
    Example {
        does: "List all certificates",
        line: "keywright certificates list",
        before: super::AUTHORITY_AND_LEAF,
    },
    Example {
        does: "Show what a CA signed",
        line: "keywright certificates list /demo/root --output yaml",
        before: super::AUTHORITY_AND_LEAF,
    },
];
