//! `keywright get`.

use std::{
    io::{self, IsTerminal},
    num::NonZeroU32,
    path::PathBuf,
};

use clap::{Args, ValueHint};
use zeroize::Zeroizing;

use super::{
    Context, Example, Failure, Outcome, Verb, help,
    shown::{ShownVersion, ShownVersions},
};
use crate::{
    SecretJson,
    new_file::{Readers, write_whole},
    output::Output,
};

/// Read a credential.
#[derive(Debug, Args)]
#[command(after_help = help(EXAMPLES))]
pub struct Get {
    /// The credential's name.
    #[arg(required_unless_present = "id", conflicts_with = "id")]
    name: Option<String>,
    /// Read one version by its id.
    #[arg(long)]
    id: Option<String>,
    /// Read so many versions, the newest first, instead of the one in use; all of them with `all`, or where no count follows.
    #[arg(long, value_name = "COUNT", num_args = 0..=1, default_missing_value = ALL, conflicts_with = "id", value_parser = count)]
    versions: Option<Count>,
    /// Write nothing but one member of the value, such as `private_key`.
    #[arg(long, short, value_name = "NAME", conflicts_with = "versions")]
    member: Option<String>,
    /// Write nothing but the value: a text as it is, anything else as JSON.
    #[arg(long, conflicts_with_all = ["versions", "member"])]
    raw: bool,
    /// Write to a file of mode 0600 instead of standard output. It says the bare value, or the member, as `--raw` does.
    #[arg(long, short, value_name = "FILE", conflicts_with = "versions", value_hint = ValueHint::FilePath)]
    file: Option<PathBuf>,
}

impl Verb for Get {
    async fn run(self, context: &Context) -> Result<Outcome, Failure> {
        let client = context.client()?;
        let name = self.name.unwrap_or_default();
        if let Some(count) = self.versions {
            let versions = client.versions(&name, count.0.map(NonZeroU32::get)).await?;
            context.output.show(&ShownVersions(&versions))?;
            return Ok(Outcome::Done);
        }
        let version = match &self.id {
            Some(id) => client.version_by_id(id).await?,
            None => client.current_version(&name).await?,
        };
        let bare =
            match &self.member {
                Some(member) => Some(version.value.member(member).ok_or_else(|| {
                    Failure::NotFound(format!("the value has no member {member}"))
                })?),
                None if self.raw || self.file.is_some() => Some(version.value.clone()),
                None => None,
            };
        match (bare, &self.file) {
            (Some(bare), Some(file)) => {
                write_whole(file, bare.plain().as_bytes(), Readers::Owner)?;
            }
            (Some(bare), None) => Output::write_raw(for_output(&bare).as_bytes())?,
            (None, _) => context.output.show(&ShownVersion(&version))?,
        }
        Ok(Outcome::Done)
    }
}

/// How many versions are read; all of them where there is no number.
#[derive(Clone, Copy, Debug)]
struct Count(Option<NonZeroU32>);

fn count(text: &str) -> Result<Count, String> {
    if text == ALL {
        return Ok(Count(None));
    }
    let number = text.parse::<NonZeroU32>();
    let number = number.map_err(|_| format!("a count, or {ALL}"))?;
    Ok(Count(Some(number)))
}

/// How it is said that all versions are to be read.
const ALL: &str = "all";

/// What is written to standard output: on a terminal with a line end, so that what follows begins on a line.
fn for_output(value: &SecretJson) -> Zeroizing<String> {
    let mut text = value.plain();
    if io::stdout().is_terminal() && !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// What help shows.
pub(super) const EXAMPLES: &[Example] = &[
    Example {
        does: "Read the version in use",
        line: "keywright get /demo/password",
        before: &[],
    },
    Example {
        does: "Put the bare value into a variable",
        line: "PASSWORD=$(keywright get /demo/password --raw)",
        before: &[],
    },
    Example {
        does: "Write one member of the value to a file of mode 0600",
        line: "keywright get /demo/user --member password --file password.txt",
        before: &[],
    },
    Example {
        does: "Read the two newest versions",
        line: "keywright get /demo/password --versions 2 --output yaml",
        before: &[],
    },
    Example {
        does: "Read all versions",
        line: "keywright get /demo/password --versions",
        before: &[],
    },
    Example {
        does: "Read the value with a token that the platform provides in a file",
        line: "keywright get /demo/password --raw --token-file token",
        before: &[
            "keywright login",
            r#"sed -n 's/.*"access_token": "\(.*\)".*/\1/p' .config/keywright/session.json >token"#,
            "test -s token && keywright logout",
        ],
    },
];
