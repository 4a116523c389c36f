//! `keywright delete`.

use std::{fmt::Write, mem};

use clap::Args;

use super::{Context, Example, Failure, Outcome, Verb, help};
use crate::{
    Client, output,
    transfer::{Endings, names_below},
};

/// Delete a credential with all its versions, or all credentials below a path.
///
/// Below a path, what fails is named, and it goes on. It ends with 3 when any failed, or when you said that you don't mean it.
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
    let names = names_below(client, path).await?;
    if names.is_empty() {
        return Err(Failure::NotFound(format!("nothing is below {path:?}")));
    }
    if !is_meant && !confirm(path, &names).await? {
        output::note("nothing was deleted");
        return Ok(Outcome::InPart);
    }
    let endings = Endings::default();
    let mut tally = Tally::of(names.len());
    for name in names {
        let begun = endings.begin();
        match client.delete_credential(&name).await {
            Ok(()) => {
                endings.answered();
                tally.deleted += 1;
            }
            Err(cause) if cause.is_told_not_found() => {
                endings.answered();
                tally.absent.push(name);
            }
            Err(cause) => {
                tally.failed += 1;
                output::note(&format!("{name}: {cause}"));
                if endings.ends_all(begun, &cause) {
                    return Err(cause.into());
                }
            }
        }
    }
    if !tally.absent.is_empty() {
        tally.judge_absent(&names_below(client, path).await?);
    }
    Ok(if tally.failed == 0 {
        Outcome::Done
    } else {
        Outcome::InPart
    })
}

async fn confirm(path: &str, names: &[String]) -> Result<bool, Failure> {
    let count = names.len();
    for name in names.iter().take(NAMES_SHOWN_MAX) {
        output::note(&format!("  {name}"));
    }
    if count > NAMES_SHOWN_MAX {
        output::note(&format!("  and {} more", count - NAMES_SHOWN_MAX));
    }
    let question = format!("Delete {count} below {path:?} with all their versions?");
    output::confirm(&question, "--yes").await
}

/// What became of what was to be deleted. It is told when this goes, however it ended.
struct Tally {
    total: usize,
    deleted: usize,
    /// Those that somebody else deleted meanwhile.
    gone: usize,
    failed: usize,
    /// What the server said is not there, or hidden: either somebody else has deleted it, or the caller may not.
    absent: Vec<String>,
}

impl Tally {
    fn of(total: usize) -> Self {
        Self {
            total,
            deleted: 0,
            gone: 0,
            failed: 0,
            absent: Vec::new(),
        }
    }

    /// What is still listed is there.
    fn judge_absent(&mut self, listed: &[String]) {
        for name in mem::take(&mut self.absent) {
            if listed.binary_search(&name).is_ok() {
                self.failed += 1;
                output::note(&format!(
                    "{name}: it is there, and the caller may not delete it"
                ));
            } else {
                self.gone += 1;
            }
        }
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        let failed = self.failed + self.absent.len();
        let mut told = format!("deleted: {}, failed: {failed}", self.deleted);
        let tried = self.deleted + self.gone + failed;
        for (count, what) in [
            (self.gone, "deleted already"),
            (self.total.saturating_sub(tried), "not tried"),
        ] {
            if count > 0 {
                // Writing to a text does not fail.
                let _ = write!(told, ", {what}: {count}");
            }
        }
        output::note(&told);
    }
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
