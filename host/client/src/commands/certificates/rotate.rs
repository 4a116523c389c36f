//! `keywright certificates rotate`.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use clap::{Args, ValueHint};
use serde::Serialize;

use crate::{
    Client, Rotation, RotationError, Stage, Step,
    api::certificates_in,
    commands::run::{CommandError, Completion, Context, Run, help},
    input::confirm,
    new_file::{Readers, replaced_file, write_whole},
    output::{self, Table, field},
};

/// Rotate a CA without downtime
///
/// A rotation has four steps:
///
/// 1. Add a transitional version. The server returns it alongside the old version; it does not sign yet.
/// 2. Move the transitional flag to the old version. From now on the new version signs.
/// 3. Regenerate everything that the old version signed.
/// 4. Clear the flag. The server no longer returns the old version.
///
/// Distribute the new certificates after steps 1 and 3. Before each step, the command describes the state and prompts for
/// confirmation. It reads the state from the server, so you can stop at any point and run the same command to continue.
#[derive(Debug, Args)]
#[command(after_help = help(EXAMPLES), verbatim_doc_comment)]
pub(super) struct Rotate {
    /// Name of the CA.
    #[arg(value_name = "CA")]
    authority: String,
    #[command(flatten)]
    pace: Pace,
    /// Continue a rotation, but never start one. For scripts that may run repeatedly.
    #[arg(long)]
    resume: bool,
    /// PEM file for the certificates to trust; written before the first step and after each step. An existing file may only
    /// contain certificates.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    bundle: Option<PathBuf>,
}

/// How many steps to take.
#[derive(Debug, Args)]
#[group(multiple = false)]
struct Pace {
    /// Only show the state of the rotation.
    #[arg(long)]
    status: bool,
    /// Take one step without confirmation.
    #[arg(long)]
    next: bool,
    /// Take all remaining steps without confirmation. Use it only if nothing needs to be distributed between them.
    #[arg(long)]
    yes: bool,
}

impl Run for Rotate {
    async fn run(self, context: &Context) -> Result<Completion, CommandError> {
        if let Some(file) = &self.bundle {
            check_replaceable(file)?;
        }
        let mut run = RotationRun {
            client: context.client()?,
            rotate: self,
            taken: Vec::new(),
            regenerated: Vec::new(),
        };
        let (rotation, outcome) = run.take_steps().await?;
        let next = (rotation.stage != Stage::NotBegun).then(|| rotation.stage.next());
        let body = Body {
            name: &rotation.name,
            stage: rotation.stage,
            next,
            signing_version: &rotation.signing_version,
            transitional_version: rotation.transitional_version.as_deref(),
            outstanding: &rotation.outstanding,
            steps_taken: &run.taken,
            regenerated_credentials: &run.regenerated,
        };
        context.show(&body, || body.table())?;
        Ok(outcome)
    }
}

/// One run of the command.
struct RotationRun {
    client: Client,
    rotate: Rotate,
    /// The steps that this run took.
    taken: Vec<Step>,
    /// The credentials that this run regenerated.
    regenerated: Vec<String>,
}

impl RotationRun {
    /// Takes as many steps as the options and the user allow, and returns the resulting state.
    async fn take_steps(&mut self) -> Result<(Rotation, Completion), CommandError> {
        loop {
            let rotation = self.observe().await?;
            if let Some(file) = &self.rotate.bundle {
                // Certificates are public.
                write_whole(file, rotation.trusted.as_bytes(), Readers::All)?;
            }
            if let Some(step) = self.taken.last()
                && !rotation.stage.has_completed(*step)
            {
                return Err(CommandError::Other(format!(
                    "step {} of 4 succeeded, but the rotation is in another state; another client may be rotating the CA. {} Run the \
                     same command to continue.",
                    step.number(),
                    describe_state(&rotation)
                )));
            }
            if self.taken.last() == Some(&Step::Switch) && rotation.stage == Stage::Renewed {
                output::note("Skipped step 3 of 4: there is nothing to regenerate.");
            }
            if self.is_finished(&rotation) {
                return Ok((rotation, Completion::Full));
            }
            output::note(&describe_state(&rotation));
            if !self.rotate.pace.next && !self.rotate.pace.yes {
                if !confirm(&question(&rotation), CONFIRMATION_OPTIONS).await? {
                    output::note("Stopped. Run the same command to continue.");
                    return Ok((rotation, Completion::Partial));
                }
                // The state may have changed while the user was deciding.
                if self.observe().await? != rotation {
                    output::note("Another client has continued the rotation.");
                    continue;
                }
            }
            self.take(&rotation).await?;
        }
    }

    /// Takes the next step. If the request fails, reads the state of the rotation to determine whether the step was taken, because
    /// the response may have been lost.
    async fn take(&mut self, rotation: &Rotation) -> Result<(), CommandError> {
        let step = rotation.stage.next();
        match rotation.advance(&self.client).await {
            Ok(regenerated) => self.regenerated.extend(regenerated),
            Err(error) => {
                let is_taken = match self.observe().await {
                    Ok(now) => now.stage.has_completed(step),
                    Err(_) => false,
                };
                if !is_taken {
                    return Err(error.into());
                }
                output::note(&format!(
                    "The request for step {} failed ({error}), but the server completed the step.",
                    step.number()
                ));
            }
        }
        output::note(&format!("Completed step {} of 4.", step.number()));
        self.taken.push(step);
        Ok(())
    }

    async fn observe(&self) -> Result<Rotation, CommandError> {
        let observed = Rotation::observe(&self.client, &self.rotate.authority).await;
        observed.map_err(|failed| match failed {
            RotationError::Request(error) => error.into(),
            RotationError::Unreadable { .. } => CommandError::NotFound(failed.to_string()),
            other => CommandError::Other(other.to_string()),
        })
    }

    /// Returns whether this run has nothing left to do. Reports why, unless it is obvious.
    fn is_finished(&self, rotation: &Rotation) -> bool {
        let Rotate { pace, resume, .. } = &self.rotate;
        let name = &rotation.name;
        let has_taken = !self.taken.is_empty();
        let has_ended = self.taken.last() == Some(&Step::Retire)
            || (rotation.stage == Stage::NotBegun && *resume);
        if pace.status {
            return true;
        }
        let reason = if has_ended && has_taken {
            format!("The rotation of {name} is complete. You can stop trusting the old version.")
        } else if has_ended {
            format!("No rotation of {name} is in progress, so there is nothing to resume.")
        } else if pace.next && has_taken {
            describe_state(rotation)
        } else {
            return false;
        };
        output::note(&reason);
        true
    }
}

/// The state of a rotation, the steps that this run took, and the credentials that it regenerated.
#[derive(Serialize)]
struct Body<'a> {
    name: &'a str,
    stage: Stage,
    /// `None` if no rotation is in progress.
    next: Option<Step>,
    signing_version: &'a str,
    transitional_version: Option<&'a str>,
    outstanding: &'a [String],
    steps_taken: &'a [Step],
    regenerated_credentials: &'a [String],
}

impl Body<'_> {
    fn table(&self) -> Table {
        let stage = match self.stage {
            Stage::NotBegun => "none in progress",
            Stage::Introduced => "the new version does not sign yet",
            Stage::Switched => "the new version signs",
            Stage::Renewed => "nothing is left to regenerate",
        };
        let mut fields = vec![
            field("name", self.name),
            field("rotation", stage),
            field("signing version", self.signing_version),
        ];
        let id = self.transitional_version;
        fields.extend(id.map(|id| field("transitional version", id)));
        let outstanding = self.outstanding.iter();
        fields.extend(outstanding.map(|name| field("outstanding", name)));
        let regenerated = self.regenerated_credentials.iter();
        fields.extend(regenerated.map(|name| field("regenerated", name)));
        let next = self.next.map(|step| format!("{} of 4", step.number()));
        fields.extend(next.map(|next| field("next step", next)));
        Table::Fields(fields)
    }
}

/// The options to suggest if there is no terminal.
const CONFIRMATION_OPTIONS: &str = "--next for one step or --yes for all remaining steps";

pub(super) const EXAMPLES: &str = "\
$ keywright generate /demo/root --type certificate --common-name root --is-ca
$ keywright generate /demo/web --type certificate --common-name web --ca /demo/root
# Show the state of a rotation
keywright certificates rotate /demo/root --status
# Take the next step and write the certificates to trust to a file
keywright certificates rotate /demo/root --next --bundle trusted.pem
# Take the remaining steps of an interrupted rotation
$ keywright certificates rotate /demo/root --next
keywright certificates rotate /demo/root --resume --yes";

/// Refuses to overwrite a file with other content than certificates, such as a private key. An earlier run may have written the
/// certificates.
fn check_replaceable(file: &Path) -> Result<(), CommandError> {
    let replaced = replaced_file(file)?.map(fs::read_to_string);
    let contains_certificates =
        |pem: io::Result<String>| pem.is_ok_and(|pem| contains_only_certificates(&pem));
    if !replaced.is_none_or(contains_certificates) {
        return Err(CommandError::Other(format!(
            "{} already exists and contains more than certificates; name another file",
            file.display()
        )));
    }
    Ok(())
}

fn contains_only_certificates(pem: &str) -> bool {
    let certificates: String = certificates_in(pem).collect();
    pem.split_whitespace().eq(certificates.split_whitespace())
}

/// Describes the state of a rotation and the requirements of the next step.
fn describe_state(rotation: &Rotation) -> String {
    let name = &rotation.name;
    match rotation.stage {
        Stage::NotBegun => format!("No rotation of {name} is in progress."),
        Stage::Introduced => format!(
            "{name} has a new version that does not sign yet. Distribute the certificates of both versions to all clients that \
             trust {name}. Continue when all of them trust both."
        ),
        Stage::Switched => format!(
            "The new version of {name} signs. The old version signed {} in use: {}.",
            count(rotation.outstanding.len()),
            list_names(&rotation.outstanding),
        ),
        Stage::Renewed => format!(
            "No certificate in use is signed by the old version of {name}. Deploy the regenerated certificates, if any. Continue when \
             no server or client presents an old certificate any more."
        ),
    }
}

/// Returns the question whether to take the next step.
fn question(rotation: &Rotation) -> String {
    match rotation.stage.next() {
        Step::Introduce => "Step 1 of 4: add a transitional version?".to_owned(),
        Step::Switch => "Step 2 of 4: sign with the new version?".to_owned(),
        Step::Renew => format!(
            "Step 3 of 4: regenerate {}?",
            count(rotation.outstanding.len())
        ),
        Step::Retire => "Step 4 of 4: stop returning the old version?".to_owned(),
    }
}

fn count(certificates: usize) -> String {
    match certificates {
        1 => "1 certificate".to_owned(),
        many => format!("{many} certificates"),
    }
}

/// Lists the first [`NAMES_MAX`] names, and counts the others.
fn list_names(names: &[String]) -> String {
    let shown = names.iter().take(NAMES_MAX).map(String::as_str);
    let mut text = shown.collect::<Vec<_>>().join(", ");
    if let Some(more @ 1..) = names.len().checked_sub(NAMES_MAX) {
        text = format!("{text} and {more} more");
    }
    text
}

/// The maximum number of listed names.
const NAMES_MAX: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_certificates_are_replaced() {
        let certificate = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";
        let key = "-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----\n";
        for (text, expected) in [
            (String::new(), true),
            (certificate.to_owned(), true),
            (format!("{certificate}\n{certificate}"), true),
            (key.to_owned(), false),
            (format!("{certificate}{key}"), false),
            (format!("{key}{certificate}"), false),
            (
                format!("-----BEGIN CERTIFICATE-----\n{key}{certificate}"),
                false,
            ),
            (certificate.replace("-----END", "-----"), false),
            ("text\n".to_owned(), false),
        ] {
            assert_eq!(contains_only_certificates(&text), expected, "{text}");
        }
    }

    #[test]
    fn at_most_ten_names_are_listed() {
        let names: Vec<_> = (0..12).map(|number| format!("/{number}")).collect();
        assert_eq!(list_names(&names[..2]), "/0, /1");
        assert_eq!(
            list_names(&names[..10]),
            "/0, /1, /2, /3, /4, /5, /6, /7, /8, /9"
        );
        assert_eq!(
            list_names(&names),
            "/0, /1, /2, /3, /4, /5, /6, /7, /8, /9 and 2 more"
        );
    }
}
