//! `keywright delete`.

use std::mem;

use clap::{ArgGroup, Args};

use super::run::{CommandError, Completion, Context, Run, help};
use crate::{
    Client, input, output,
    transfer::{Losses, names_below},
};

/// Delete a credential, or all credentials below a path
///
/// Deletes all versions. With `--path`, prompts for confirmation, continues after a failure, and reports each failure. The exit
/// status is 3 if a deletion failed or you did not confirm.
#[derive(Debug, Args)]
#[command(after_help = help(EXAMPLES))]
#[command(group = ArgGroup::new("selection").required(true).args(["name", "path"]))]
pub struct Delete {
    /// Name of the credential.
    #[arg(value_parser = input::name)]
    name: Option<String>,
    /// Path below which to delete all credentials that `find` lists; `/` for all.
    #[arg(long, value_name = "PATH", value_parser = input::path)]
    path: Option<String>,
    /// Skip the confirmation.
    #[arg(long, short, requires = "path")]
    yes: bool,
}

impl Run for Delete {
    async fn run(self, context: &Context) -> Result<Completion, CommandError> {
        let client = context.client()?;
        match (self.name, self.path) {
            (Some(name), _) => {
                client.delete_credential(&name).await?;
                output::note(&format!("Deleted {name}."));
                Ok(Completion::Full)
            }
            (None, Some(path)) => delete_below(&client, &path, self.yes).await,
            (None, None) => Err(CommandError::Usage("missing name or --path".to_owned())),
        }
    }
}

/// Deletes everything below a path. Continues after a failure, and reports each one.
async fn delete_below(
    client: &Client,
    path: &str,
    is_confirmed: bool,
) -> Result<Completion, CommandError> {
    let names = names_below(client, path).await?;
    if names.is_empty() {
        let advice = if path.ends_with('*') {
            "; omit the asterisk: a path includes everything below it"
        } else {
            ""
        };
        return Err(CommandError::NotFound(format!(
            "no credentials below {path:?}{advice}"
        )));
    }
    if !is_confirmed && !confirm(path, &names).await? {
        output::note("Deleted nothing.");
        return Ok(Completion::Partial);
    }
    let losses = Losses::default();
    let mut tally = Tally {
        total: names.len(),
        deleted: 0,
        already_deleted: 0,
        failed: 0,
        absent: Vec::new(),
    };
    for name in names {
        let started = losses.begin();
        match client.delete_credential(&name).await {
            Ok(()) => {
                losses.responded();
                tally.deleted += 1;
            }
            Err(cause) if cause.is_api_not_found() => {
                losses.responded();
                tally.absent.push(name);
            }
            Err(cause) => {
                tally.failed += 1;
                output::note(&format!("{name}: {cause}"));
                if losses.aborts_run(started, &cause) {
                    return Err(cause.into());
                }
            }
        }
    }
    if !tally.absent.is_empty() {
        tally.resolve_absent(&names_below(client, path).await?);
    }
    Ok(Completion::full_if(tally.failed == 0))
}

async fn confirm(path: &str, names: &[String]) -> Result<bool, CommandError> {
    let count = names.len();
    for name in names.iter().take(NAMES_SHOWN_MAX) {
        output::note(&format!("  {name}"));
    }
    if count > NAMES_SHOWN_MAX {
        output::note(&format!("  and {} more", count - NAMES_SHOWN_MAX));
    }
    let question = format!(
        "Delete {} below {path:?} with all versions?",
        output::credentials(count)
    );
    input::confirm(&question, "--yes").await
}

/// Counts the deletions by result, and reports the counts when dropped, even after an error.
struct Tally {
    total: usize,
    deleted: usize,
    /// The number of credentials that other clients deleted during the run.
    already_deleted: usize,
    failed: usize,
    /// Names for which the server responded with 404: another client deleted the credential, or the caller may not delete it.
    absent: Vec<String>,
}

impl Tally {
    /// Counts an absent name as failed if the server still lists it, and as already deleted otherwise.
    fn resolve_absent(&mut self, listed: &[String]) {
        for name in mem::take(&mut self.absent) {
            if listed.binary_search(&name).is_ok() {
                self.failed += 1;
                output::note(&format!("{name}: you are not allowed to delete it"));
            } else {
                self.already_deleted += 1;
            }
        }
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        let failed = self.failed + self.absent.len();
        let attempted = self.deleted + self.already_deleted + failed;
        let others = [
            (output::FAILED, failed),
            ("already deleted", self.already_deleted),
            ("not attempted", self.total.saturating_sub(attempted)),
        ];
        output::note_counts("Deleted", self.deleted, &others);
    }
}

/// The number of names shown before the confirmation.
const NAMES_SHOWN_MAX: usize = 10;

pub(super) const EXAMPLES: &str = "\
# Delete one credential
keywright delete /demo/password
# Delete everything below a path without confirmation
keywright delete --path /demo --yes";
