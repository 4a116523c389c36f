//! `keywright regenerate`.

use clap::Args;

use super::{
    Completion, Context, Example, Failure, Verb, help, input::metadata, shown::ShownVersion,
};
use crate::SecretJson;

/// Regenerate a credential with its stored parameters.
///
/// Adds a version, generated with the parameters of the latest version.
#[derive(Debug, Args)]
#[command(after_help = help(EXAMPLES))]
pub struct Regenerate {
    /// Name of the credential.
    name: String,
    /// Metadata to store: a JSON object. It is not encrypted.
    #[arg(long, value_name = "JSON", value_parser = metadata)]
    metadata: Option<SecretJson>,
}

impl Verb for Regenerate {
    async fn run(self, context: &Context) -> Result<Completion, Failure> {
        let client = context.client()?;
        let version = client
            .regenerate_credential(&self.name, self.metadata.as_ref())
            .await?;
        context.output.show(&ShownVersion(&version))?;
        Ok(Completion::Full)
    }
}

pub(super) const EXAMPLES: &[Example] = &[Example {
    does: "Replace a password with a new one of the same form",
    line: "keywright regenerate /demo/generated",
    before: &["keywright generate /demo/generated --type password --length 40"],
}];
