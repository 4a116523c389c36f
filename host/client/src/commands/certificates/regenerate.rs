//! `keywright certificates regenerate`.

use clap::Args;

use crate::{
    RegenerateCertificate,
    commands::{Context, Example, Failure, Outcome, Verb, help, shown::ShownVersion},
};

/// Regenerate a certificate, perhaps as a transitional version. What is not said stays as it was.
#[derive(Debug, Args)]
#[command(after_help = help(EXAMPLES))]
pub(super) struct Regenerate {
    /// The certificate's name.
    name: String,
    /// The new version is transitional: it is handed out beside the one in use, and does not sign.
    #[arg(long)]
    transitional: bool,
    /// Let a transitional version of the authority sign, where it is newer than the one that does.
    #[arg(long)]
    allow_transitional_parent_to_sign: bool,
    /// Another length of the key: 2048, 3072 or 4096.
    #[arg(long, value_name = "BITS")]
    key_length: Option<u32>,
    /// Another validity.
    #[arg(long, value_name = "DAYS")]
    duration: Option<u32>,
}

impl Verb for Regenerate {
    async fn run(self, context: &Context) -> Result<Outcome, Failure> {
        let client = context.client()?;
        let id = client.certificate(&self.name).await?.id;
        let how = RegenerateCertificate {
            set_as_transitional: self.transitional,
            allow_transitional_parent_to_sign: self.allow_transitional_parent_to_sign,
            key_length: self.key_length,
            duration: self.duration,
        };
        let version = client.regenerate_certificate(&id, &how).await?;
        context.output.show(&ShownVersion(&version))?;
        Ok(Outcome::Done)
    }
}

/// What help shows.
pub(super) const EXAMPLES: &[Example] = &[
    Example {
        does: "Renew a certificate for another 90 days",
        line: "keywright certificates regenerate /demo/web --duration 90",
        before: super::AUTHORITY_AND_LEAF,
    },
    Example {
        does: "Add a version of an authority that does not sign yet",
        line: "keywright certificates regenerate /demo/root --transitional",
        before: super::AUTHORITY_AND_LEAF,
    },
];
