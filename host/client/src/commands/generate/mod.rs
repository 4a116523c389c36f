//! `keywright generate`.

mod check;
mod parameters;

use clap::{Args, ValueEnum};

use super::{Context, Example, Failure, Outcome, Verb, help, input::metadata, shown::ShownVersion};
use crate::{GenerateCredential, GenerateMode, SecretJson};
use parameters::Parameters;

/// Have the server make a credential.
///
/// A parameter that has no option of its own, such as one of a generator that only this server has, is said by `--param`.
/// Where the server tells what its types are made of, as `keywright types` shows it, parameters are checked before they are
/// sent.
#[derive(Debug, Args)]
#[command(after_help = help(EXAMPLES))]
pub struct Generate {
    /// The credential's name.
    name: String,
    /// The credential's type.
    #[arg(long = "type", short = 't', value_name = "TYPE")]
    credential_type: String,
    /// What becomes of a credential that is there already: a new version if it was made of other parameters, which the
    /// server does when nothing is said; nothing; or a new version in any case.
    #[arg(long, value_enum, value_name = "MODE")]
    mode: Option<Mode>,
    #[command(flatten)]
    parameters: Parameters,
    /// What to keep besides, as a JSON object. It is not encrypted.
    #[arg(long, value_name = "JSON", value_parser = metadata)]
    metadata: Option<SecretJson>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Mode {
    Converge,
    NoOverwrite,
    Overwrite,
}

impl Verb for Generate {
    async fn run(self, context: &Context) -> Result<Outcome, Failure> {
        let client = context.client()?;
        let known = if self.parameters.are_to_be_checked() {
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
        Ok(Outcome::Done)
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

/// What help shows.
pub(super) const EXAMPLES: &[Example] = &[
    Example {
        does: "Make a password of 40 characters",
        line: "keywright generate /demo/token --type password --length 40",
        before: &[],
    },
    Example {
        does: "Make an authority",
        line: "keywright generate /demo/root --type certificate --common-name root --is-ca",
        before: &[],
    },
    Example {
        does: "Make a certificate that the authority signs",
        line: "keywright generate /demo/web --type certificate --common-name web --ca /demo/root --alternative-name web.example",
        before: &["keywright generate /demo/root --type certificate --common-name root --is-ca"],
    },
    Example {
        does: "Say a parameter by its name, as for the types of a server's own generators",
        line: "keywright generate /demo/pin --type password --param length=6 --param exclude_lower=true",
        before: &[],
    },
];
