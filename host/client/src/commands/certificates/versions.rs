//! `keywright certificates versions`.

use clap::Args;

use super::shown::ShownVersions;
use crate::commands::{Completion, Context, Example, Failure, Verb, help};

/// List the versions of a certificate, newest first.
///
/// Omits private keys; `keywright get` prints them.
#[derive(Debug, Args)]
#[command(after_help = help(EXAMPLES))]
pub(super) struct Versions {
    /// Name of the certificate.
    name: String,
    /// Only list the active and the transitional version.
    #[arg(long)]
    current: bool,
}

impl Verb for Versions {
    async fn run(self, context: &Context) -> Result<Completion, Failure> {
        let client = context.client()?;
        let id = client.certificate(&self.name).await?.id;
        let versions = if self.current {
            client.current_certificate_versions(&id).await?
        } else {
            client.certificate_versions(&id).await?
        };
        context.output.show(&ShownVersions(&versions))?;
        Ok(Completion::Full)
    }
}

pub(super) const EXAMPLES: &[Example] = &[
    Example {
        does: "List all versions of a certificate",
        line: "keywright certificates versions /demo/web",
        before: super::AUTHORITY_AND_LEAF,
    },
    Example {
        does: "Show which version signs and which is transitional",
        line: "keywright certificates versions /demo/root --current",
        before: super::AUTHORITY_AND_LEAF,
    },
];
