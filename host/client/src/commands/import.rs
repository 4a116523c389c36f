//! `keywright import`.

use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};

use super::{Context, Example, Failure, Outcome, Verb, help};
use crate::transfer::{Format, ImportEnded, Plan, Report, import, look_through};

/// Set every credential that a file lists.
///
/// The file is YAML or JSON with a list `credentials` of name, type, value, and metadata where there is some, as `export` and
/// other clients of this API write it. It is read to its end before anything is set. A certificate with `ca_name` is set
/// after its authority, wherever the two stand.
///
/// What fails is named, and the import goes on, also when a connection is lost, until the server is out of reach several times
/// in a row. It ends with 3 when any failed, and may be run again: credentials are then set to the same values, or left alone
/// with `--skip-unchanged`.
///
/// Unquoted scalars are texts wherever a text is needed (`007`, `yes` and `2026-11-22` too), and what the core schema of YAML
/// 1.2 says in values of type json. `password_hash` and `public_key_fingerprint` are left out: the server makes them.
#[derive(Debug, Args)]
#[command(after_help = help(EXAMPLES))]
pub struct Import {
    /// The file; `-` is standard input.
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    source: PathBuf,
    /// Write nothing, and check each entry as far as that is possible: its members, whether the server has a credential of
    /// another type by its name, and whether its authority is there.
    #[arg(long)]
    dry_run: bool,
    /// Leave alone what the server has already with the same type, value and metadata, instead of adding a version of it.
    #[arg(long)]
    skip_unchanged: bool,
    /// The form of the file. Otherwise it is JSON when it begins with a brace, and YAML when not.
    #[arg(long, value_enum, value_name = "FORM")]
    format: Option<Format>,
    /// How many requests are on their way at once.
    #[arg(long, value_name = "COUNT", default_value_t = 8, value_parser = clap::value_parser!(u8).range(1..=64))]
    parallel: u8,
}

impl Verb for Import {
    async fn run(self, context: &Context) -> Result<Outcome, Failure> {
        let client = context.client()?;
        let refused = |cause| refused(&self.source, cause);
        let listing = look_through(self.source.clone(), self.format).await;
        let listing = listing.map_err(refused)?;
        let plan = Plan {
            is_dry_run: self.dry_run,
            skips_unchanged: self.skip_unchanged,
            parallel: self.parallel.into(),
        };
        let mut report = Report::begin(listing.total, self.dry_run);
        let ended = import(client, listing, plan, &mut report).await;
        let summary = report.finish();
        context.output.show(&summary)?;
        ended.map_err(refused)?;
        Ok(if summary.failed > 0 {
            Outcome::InPart
        } else {
            Outcome::Done
        })
    }
}

fn refused(source: &Path, ended: ImportEnded) -> Failure {
    match ended {
        ImportEnded::Client(error) => error.into(),
        ImportEnded::Broken(_) => Failure::Other(ended.to_string()),
        ImportEnded::File(cause) => {
            let deeper = std::error::Error::source(&cause);
            let deeper = deeper
                .map(|deeper| format!(": {deeper}"))
                .unwrap_or_default();
            Failure::Other(format!("{}: {cause}{deeper}", source.display()))
        }
    }
}

/// What help shows.
pub(super) const EXAMPLES: &[Example] = &[
    Example {
        does: "Set what a file lists",
        line: "keywright import credentials.yml",
        before: &["keywright export --file credentials.yml"],
    },
    Example {
        does: "See first what would fail",
        line: "keywright import credentials.yml --dry-run",
        before: &["keywright export --file credentials.yml"],
    },
    Example {
        does: "Go on with an import that was interrupted",
        line: "keywright import credentials.yml --skip-unchanged",
        before: &["keywright export --file credentials.yml"],
    },
    Example {
        does: "Import from a pipe",
        line: "gunzip <credentials.yml.gz | keywright import -",
        before: &["keywright export | gzip >credentials.yml.gz"],
    },
];
