//! `keywright certificates regenerate`.

use clap::Args;

use crate::{
    RegenerateCertificate,
    commands::{Completion, Context, Example, Failure, Verb, help, shown::ShownVersion},
};

/// Regenerate a certificate, optionally transitional.
///
/// Parameters without an option keep their values.
#[derive(Debug, Args)]
#[command(after_help = help(EXAMPLES))]
pub(super) struct Regenerate {
    /// Name of the certificate.
    name: String,
    /// Make the new version transitional: returned alongside the active version, but not used for signing.
    #[arg(long)]
    transitional: bool,
    /// Sign with the CA's transitional version if it is newer than the active one.
    #[arg(long)]
    allow_transitional_parent_to_sign: bool,
    /// New key length: 2048, 3072 or 4096.
    #[arg(long, value_name = "BITS")]
    key_length: Option<u32>,
    /// New validity period.
    #[arg(long, value_name = "DAYS")]
    duration: Option<u32>,
}

impl Verb for Regenerate {
    async fn run(self, context: &Context) -> Result<Completion, Failure> {
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
        Ok(Completion::Full)
    }
}

pub(super) const EXAMPLES: &[Example] = &[
    Example {
        does: "Renew a certificate for another 90 days",
        line: "keywright certificates regenerate /demo/web --duration 90",
        before: super::AUTHORITY_AND_LEAF,
    },
    Example {
        does: "Add a version of a CA that does not sign yet",
        line: "keywright certificates regenerate /demo/root --transitional",
        before: super::AUTHORITY_AND_LEAF,
    },
];
