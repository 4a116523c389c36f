//! `keywright certificates rotate`.

mod shown;
mod words;

use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::{
    Client, Rotation, RotationFailed, Stage, Step,
    commands::{Context, Example, Failure, Outcome, Verb, help},
    new_file::{Readers, write_whole},
    output::{self, confirm},
};
use shown::ShownRotation;

/// Rotate an authority without a connection that fails, in four steps.
///
/// 1. Add a version that is transitional: it is handed out beside the old one, and does not sign yet.
/// 2. Move the flag to the old version: the new one signs.
/// 3. Regenerate everything that the old version signed.
/// 4. Clear the flag: the old version is handed out no more.
///
/// After steps 1 and 3, what they made must reach everyone who needs it before the next one is taken. On a terminal each
/// step says what, and is taken when you say so. Where a rotation stands is read from the server, so it can be left at any
/// point, and the same command goes on from there.
#[derive(Debug, Args)]
#[command(after_help = help(EXAMPLES), verbatim_doc_comment)]
pub(super) struct Rotate {
    /// The authority's name.
    authority: String,
    #[command(flatten)]
    pace: Pace,
    /// Go on with a rotation that is under way, and begin none. For scripts that are run again.
    #[arg(long)]
    resume: bool,
    /// Keep the certificates that must be trusted at this point in a file, PEM: before the first step, and after each.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    bundle: Option<PathBuf>,
}

/// How far to go.
#[derive(Debug, Args)]
#[group(multiple = false)]
struct Pace {
    /// Take no step, and show where the rotation stands.
    #[arg(long)]
    status: bool,
    /// Take one step without asking.
    #[arg(long)]
    next: bool,
    /// Take all steps that are left without asking. For where nothing need be given out between them.
    #[arg(long)]
    yes: bool,
}

impl Verb for Rotate {
    async fn run(self, context: &Context) -> Result<Outcome, Failure> {
        let mut walk = Walk {
            client: context.client()?,
            rotate: self,
            taken: Vec::new(),
            regenerated: Vec::new(),
        };
        let (rotation, outcome) = walk.go().await?;
        context.output.show(&ShownRotation {
            rotation: &rotation,
            taken: &walk.taken,
            regenerated: &walk.regenerated,
        })?;
        Ok(outcome)
    }
}

/// One run of the verb.
struct Walk {
    client: Client,
    rotate: Rotate,
    /// The steps that this run took.
    taken: Vec<Step>,
    /// What it regenerated.
    regenerated: Vec<String>,
}

impl Walk {
    /// Takes steps as far as it is told, and returns where the rotation stands then.
    async fn go(&mut self) -> Result<(Rotation, Outcome), Failure> {
        loop {
            let rotation = self.observe().await?;
            if let Some(file) = &self.rotate.bundle {
                // Certificates are no secret.
                write_whole(file, rotation.trusted.as_bytes(), Readers::All)?;
            }
            if let Some(step) = self.taken.last()
                && !rotation.stage.is_behind(*step)
            {
                return Err(Failure::Other(words::stuck(*step, &rotation)));
            }
            if self.is_at_end(&rotation) {
                return Ok((rotation, Outcome::Done));
            }
            output::note(&words::state(&rotation));
            if !self.may_take(&rotation).await? {
                output::note("Nothing more is done. The same command goes on from here.");
                return Ok((rotation, Outcome::InPart));
            }
            // Time has passed while a person thought.
            if self.asks() && self.observe().await? != rotation {
                output::note("The rotation has gone on meanwhile, by someone else.");
                continue;
            }
            self.take(&rotation).await?;
        }
    }

    /// Takes the next step. When that fails, where the rotation stands then decides whether it was taken all the same: the
    /// answer may have been lost.
    async fn take(&mut self, rotation: &Rotation) -> Result<(), Failure> {
        let step = rotation.stage.next();
        match rotation.advance(&self.client).await {
            Ok(regenerated) => self.regenerated.extend(regenerated),
            Err(error) => {
                let is_taken = match self.observe().await {
                    Ok(now) => now.stage.is_behind(step),
                    Err(_) => false,
                };
                if !is_taken {
                    return Err(error.into());
                }
                output::note(&words::lost(step, &error));
            }
        }
        output::note(&format!("Step {} of 4 is done.", step.number()));
        self.taken.push(step);
        Ok(())
    }

    async fn observe(&self) -> Result<Rotation, Failure> {
        let observed = Rotation::observe(&self.client, &self.rotate.authority).await;
        observed.map_err(|failed| match failed {
            RotationFailed::Request(error) => error.into(),
            RotationFailed::Unreadable { .. } => Failure::NotFound(failed.to_string()),
            other => Failure::Other(other.to_string()),
        })
    }

    /// Whether nothing is left to do, and says so where that is not plain.
    fn is_at_end(&self, rotation: &Rotation) -> bool {
        let Rotate { pace, resume, .. } = &self.rotate;
        let has_taken = !self.taken.is_empty();
        if pace.status {
            return true;
        }
        let has_ended = self.taken.last() == Some(&Step::Retire);
        if has_ended || (rotation.stage == Stage::NotBegun && *resume) {
            output::note(&words::end(rotation, has_taken));
            return true;
        }
        if pace.next && has_taken {
            output::note(&words::state(rotation));
            return true;
        }
        false
    }

    /// Whether the next step is to be taken.
    async fn may_take(&self, rotation: &Rotation) -> Result<bool, Failure> {
        if self.asks() {
            confirm(&words::question(rotation), WITHOUT_ASKING).await
        } else {
            Ok(true)
        }
    }

    fn asks(&self) -> bool {
        !self.rotate.pace.next && !self.rotate.pace.yes
    }
}

/// The way out where nobody can be asked.
const WITHOUT_ASKING: &str = "--next for one step, or --yes for all that are left,";

/// What help shows.
pub(super) const EXAMPLES: &[Example] = &[
    Example {
        does: "See where a rotation stands",
        line: "keywright certificates rotate /demo/root --status",
        before: super::AUTHORITY_AND_LEAF,
    },
    Example {
        does: "Take the next step from a script, and have what must be trusted then in a file",
        line: "keywright certificates rotate /demo/root --next --bundle trusted.pem",
        before: super::AUTHORITY_AND_LEAF,
    },
    Example {
        does: "Take the steps that are left of a rotation that was left",
        line: "keywright certificates rotate /demo/root --resume --yes",
        before: &[
            super::AUTHORITY,
            "keywright certificates rotate /demo/root --next",
        ],
    },
];
