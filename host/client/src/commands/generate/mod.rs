//! `keywright generate`.

mod check;
mod parameters;

use clap::{Args, ValueEnum};

use super::{
    Completion, Context, Example, Failure, Verb, help, input::metadata, shown::ShownVersion,
};
use crate::{GenerateCredential, GenerateMode, SecretJson};
use parameters::Parameters;

/// Generate a credential.
///
/// Pass parameters without an option of their own, such as those of custom generators, with `--param`. If the server describes the
/// parameters of its types (see `keywright types`), the client validates `--param` and `--parameters-file` before it sends them.
#[derive(Debug, Args)]
#[command(after_help = help(EXAMPLES))]
pub struct Generate {
    /// Name of the credential.
    name: String,
    /// Type of the credential.
    #[arg(long = "type", short = 't', value_name = "TYPE")]
    credential_type: String,
    /// What to do if the credential exists. Default: the server decides (converge).
    #[arg(long, value_enum, value_name = "MODE")]
    mode: Option<Mode>,
    #[command(flatten)]
    parameters: Parameters,
    /// Metadata to store: a JSON object. It is not encrypted.
    #[arg(long, value_name = "JSON", value_parser = metadata)]
    metadata: Option<SecretJson>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Mode {
    /// Add a version if the parameters differ.
    Converge,
    /// Keep the credential.
    NoOverwrite,
    /// Add a version.
    Overwrite,
}

impl Verb for Generate {
    async fn run(self, context: &Context) -> Result<Completion, Failure> {
        let client = context.client()?;
        let known = if self.parameters.need_description() {
            check::known_type(&client, &self.credential_type).await?
        } else {
            None
        };
        let parameters = self.parameters.gathered(known.as_ref())?;
        if let Some(known) = &known {
            check::check(known, &parameters)?;
        }
        let mut credential =
            GenerateCredential::new(self.name, self.credential_type).parameters(parameters);
        if let Some(mode) = self.mode {
            credential = credential.mode(mode.into());
        }
        if let Some(metadata) = self.metadata {
            credential = credential.metadata(metadata);
        }
        let version = client.generate_credential(&credential).await?;
        context.output.show(&ShownVersion(&version))?;
        Ok(Completion::Full)
    }
}

impl From<Mode> for GenerateMode {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Converge => Self::Converge,
            Mode::NoOverwrite => Self::NoOverwrite,
            Mode::Overwrite => Self::Overwrite,
        }
    }
}

pub(super) const EXAMPLES: &[Example] = &[
    Example {
        does: "Generate a password of 40 characters",
        line: "keywright generate /demo/token --type password --length 40",
        before: &[],
    },
    Example {
        does: "Generate a CA",
        line: "keywright generate /demo/root --type certificate --common-name root --is-ca",
        before: &[],
    },
    Example {
        does: "Generate a certificate signed by the CA",
        line: "keywright generate /demo/web --type certificate --common-name web --ca /demo/root --alternative-name web.example",
        before: &["keywright generate /demo/root --type certificate --common-name root --is-ca"],
    },
    Example {
        does: "Pass parameters by name, as for custom generators",
        line: "keywright generate /demo/pin --type password --param length=6 --param exclude_lower=true",
        before: &[],
    },
];
