//! `keywright delete`.

use clap::Args;

use super::{Context, Example, Failure, Outcome, Verb, help};
use crate::{Client, Find, output};

/// Delete a credential with all its versions, or all credentials below a path.
#[derive(Debug, Args)]
#[command(after_help = help(EXAMPLES))]
pub struct Delete {
    /// The credential's name.
    #[arg(required_unless_present = "path", conflicts_with = "path")]
    name: Option<String>,
    /// Delete everything below this path that `find` finds there, once you have said that you mean it.
    #[arg(long, value_name = "PATH")]
    path: Option<String>,
    /// Don't ask.
    #[arg(long, short, requires = "path")]
    yes: bool,
}

impl Verb for Delete {
    async fn run(self, context: &Context) -> Result<Outcome, Failure> {
        let client = context.client()?;
        match (self.name, self.path) {
            (Some(name), _) => {
                client.delete_credential(&name).await?;
                output::note(&format!("deleted {name}"));
                Ok(Outcome::Done)
            }
            (None, Some(path)) => below(&client, &path, self.yes).await,
            (None, None) => Err(Failure::Usage("a name or --path is needed".to_owned())),
        }
    }
}

/// Deletes what is below a path. It goes on after a failure, and names each.
async fn below(client: &Client, path: &str, is_meant: bool) -> Result<Outcome, Failure> {
    let found = client.find_credentials(&Find::below(path)).await?;
    if found.is_empty() {
        return Err(Failure::NotFound(format!("nothing is below {path:?}")));
    }
    let count = found.len();
    if !is_meant {
        for found in found.iter().take(NAMES_SHOWN_MAX) {
            output::note(&format!("  {}", found.name));
        }
        if count > NAMES_SHOWN_MAX {
            output::note(&format!("  and {} more", count - NAMES_SHOWN_MAX));
        }
        let question = format!("Delete {count} below {path:?} with all their versions?");
        if !output::confirm(&question, "--yes").await? {
            return Err(Failure::Other("nothing was deleted".to_owned()));
        }
    }
    let mut failed = 0;
    for found in found {
        match client.delete_credential(&found.name).await {
            Ok(()) => {}
            Err(cause) if cause.is_unavailable() => return Err(cause.into()),
            Err(cause) => {
                failed += 1;
                output::note(&format!("{}: {cause}", found.name));
            }
        }
    }
    output::note(&format!("deleted: {}, failed: {failed}", count - failed));
    Ok(if failed == 0 {
        Outcome::Done
    } else {
        Outcome::InPart
    })
}

/// How many names are shown before it is asked whether they are to be deleted.
const NAMES_SHOWN_MAX: usize = 10;

/// What help shows.
pub(super) const EXAMPLES: &[Example] = &[
    Example {
        does: "Delete one credential",
        line: "keywright delete /demo/password",
        before: &[],
    },
    Example {
        does: "Delete everything below a path, without being asked",
        line: "keywright delete --path /demo --yes",
        before: &[],
    },
];
