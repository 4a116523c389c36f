//! `keywright import`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::run::{CommandError, Completion, Context, Run, help};
use crate::{
    input,
    transfer::{Format, Plan, Report, import, scan},
};

/// Set all credentials listed in a file
///
/// The file is YAML or JSON with a list `credentials` of name, type, value, and optional metadata, as `export` and other CredHub
/// clients write it. It is read completely before any credential is set. A CA is set before the credentials that name it
/// by `ca_name` or by the parameter `ca`, regardless of their order in the file.
///
/// The import reports each failure and continues, even after a lost connection. It stops when the server is unreachable several
/// times in a row. The exit status is 3 if an entry failed. You can run an import again: it sets credentials to the same values,
/// or skips them with `--skip-unchanged`.
///
/// With `generated_by` and `parameters`, an imported credential can be regenerated and found by its plugin. The server checks them
/// like a request to generate, and marks them as imported. If the server refuses them, the import prints a warning and sets the
/// credential without them.
///
/// Where a string is required, an unquoted scalar such as `007`, `yes` or `2026-11-22` is a string. In values of type json, the
/// YAML 1.2 core schema applies. `password_hash` and `public_key_fingerprint` are ignored: the server computes a new hash, and
/// set keys have no fingerprint.
#[derive(Debug, Args)]
#[command(after_help = help(EXAMPLES))]
pub struct Import {
    /// File to import; `-` for standard input.
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    source: PathBuf,
    /// Only check the entries: their fields, conflicting types of existing credentials, and missing CAs.
    #[arg(long)]
    dry_run: bool,
    /// Skip credentials that exist with the same type, value, metadata and `generated_by`.
    #[arg(long)]
    skip_unchanged: bool,
    /// Format of the file. Default: JSON if it starts with a brace, YAML otherwise.
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<Format>,
    /// Number of concurrent requests.
    #[arg(long, value_name = "COUNT", default_value_t = 8, value_parser = input::parallel)]
    parallel: u8,
}

impl Run for Import {
    async fn run(self, context: &Context) -> Result<Completion, CommandError> {
        let client = context.client()?;
        let listing = scan(self.source, self.format).await?;
        let plan = Plan {
            is_dry_run: self.dry_run,
            skips_unchanged: self.skip_unchanged,
            parallel: self.parallel.into(),
        };
        let mut report = Report::begin(listing.total, self.dry_run);
        let ended = import(client, listing, plan, &mut report).await;
        let summary = report.finish();
        context.output.show(&summary, || summary.table())?;
        ended?;
        Ok(Completion::full_if(summary.failed == 0))
    }
}

pub(super) const EXAMPLES: &str = "\
$ keywright export --file credentials.yml
# Import a file
keywright import credentials.yml
# Check a file without importing it
keywright import credentials.yml --dry-run
# Continue an interrupted import
keywright import credentials.yml --skip-unchanged
# Import from a pipe
$ keywright export | gzip >credentials.yml.gz
gunzip <credentials.yml.gz | keywright import -";
