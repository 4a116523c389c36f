//! `keywright export`.

use std::{io, mem, path::PathBuf};

use clap::{Args, ValueHint};
use futures_util::StreamExt;
use indicatif::ProgressBar;
use serde::Serialize;

use super::run::{CommandError, Completion, Context, Run, help};
use crate::{
    Client, Error, input,
    new_file::NewFile,
    output,
    session::OutputFormat,
    transfer::{
        Authorities, BackgroundWriter, EntryWriter, Format, Losses, Node, Read, names_below,
        progress_bar, read_all,
    },
};

/// Export credentials with their values to a file
///
/// The file is YAML or JSON that `import` reads: a list `credentials` with the name, type and value of each active version, and
/// its metadata if any. If a plugin generated the value, `generated_by` is the plugin's digest, and `parameters` are the parameters that it used.
/// Other CredHub clients ignore these two fields. A certificate refers to its CA by `ca_name` if the CA is stored and its active version signed the
/// certificate; otherwise `ca` contains the CA certificate. The values are not encrypted.
///
/// An export is not a snapshot: a credential that changes during the export may be exported before or after its change, and a
/// credential that is deleted or hidden from you during the export is omitted and counted. Like `find`, an export silently
/// omits certificates whose only version is transitional. The exit status is 3 if any other credential is missing from the file.
#[derive(Debug, Args)]
#[command(after_help = help(EXAMPLES))]
pub struct Export {
    /// Path to export. Default: everything.
    #[arg(
        long,
        value_name = "PATH",
        default_value = "",
        hide_default_value = true
    )]
    path: String,
    /// File to write, with mode 0600; it appears once complete. Default: standard output.
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: Option<PathBuf>,
    /// Overwrite an existing file. Also follows symbolic links that you or root own, and writes to other users' pipes.
    #[arg(long, requires = "file")]
    force: bool,
    /// Format of the file. Default: from `--output` or the file's extension, otherwise YAML.
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<Format>,
    /// Report and skip credentials that can't be read, with exit status 3. Default: stop and export nothing.
    #[arg(long)]
    keep_going: bool,
    /// Number of concurrent requests.
    #[arg(long, value_name = "COUNT", default_value_t = 8, value_parser = input::parallel)]
    parallel: u8,
}

impl Run for Export {
    async fn run(self, context: &Context) -> Result<Completion, CommandError> {
        let client = context.client()?;
        let format = self.format(context.settings.output);
        let summary = self.export(&client, format).await?;
        let is_whole = summary.failed == 0;
        match self.file {
            Some(_) => context.output.show(&summary, || {
                output::table_of_counts("exported", summary.exported, &summary.others())
            })?,
            None => output::note_counts("Exported", summary.exported, &summary.others()),
        }
        Ok(Completion::full_if(is_whole))
    }
}

impl Export {
    fn format(&self, output: Option<OutputFormat>) -> Format {
        let is_json = |file: &PathBuf| {
            let extension = file.extension();
            extension.is_some_and(|extension| extension.eq_ignore_ascii_case("json"))
        };
        match (self.format, output) {
            (Some(format), _) => format,
            (None, Some(OutputFormat::Json)) => Format::Json,
            (None, Some(OutputFormat::Yaml)) => Format::Yaml,
            _ if self.file.as_ref().is_some_and(is_json) => Format::Json,
            _ => Format::Yaml,
        }
    }

    /// Exports the credentials. If the future is dropped before it completes, no file appears, and standard output ends with text
    /// that no parser accepts.
    async fn export(&self, client: &Client, format: Format) -> Result<Summary, CommandError> {
        let begin_file = |file: &PathBuf| NewFile::begin(file, self.force);
        let file = self.file.as_ref().map(begin_file).transpose()?;
        let names = names_below(client, &self.path).await?;
        let output = match &file {
            Some(file) => BackgroundWriter::begin(file.content()?),
            None => BackgroundWriter::begin(io::stdout()),
        };
        let mut writer = output
            .and_then(|output| EntryWriter::begin(output, format))
            .map_err(write_error)?;
        let losses = Losses::default();
        let mut reading = Reading {
            keep_going: self.keep_going,
            progress: progress_bar("exported", names.len() as u64),
            losses: &losses,
            absent: Vec::new(),
            summary: Summary::default(),
        };
        let authorities = Authorities::default();
        let mut credentials = read_all(client, &authorities, &losses, names, self.parallel.into());
        while let Some(read) = credentials.next().await {
            if let Some(entry) = reading.handle(read)? {
                writer.write(&entry).map_err(write_error)?;
                writer.output().pass_on().await.map_err(write_error)?;
            }
        }
        if !reading.absent.is_empty() {
            reading.resolve_absent(names_below(client, &self.path).await);
        }
        let output = writer.finish().map_err(write_error)?;
        output.finish().await.map_err(write_error)?;
        if let Some(file) = file {
            file.complete().await?;
        }
        Ok(reading.summary)
    }
}

/// An export in progress.
struct Reading<'a> {
    keep_going: bool,
    progress: ProgressBar,
    losses: &'a Losses,
    /// Names that the server listed, but then responded to with 404.
    absent: Vec<String>,
    summary: Summary,
}

impl Reading<'_> {
    /// Returns the entry to write for a credential, if any.
    fn handle(&mut self, read: Read) -> Result<Option<Node>, CommandError> {
        let name = read.name;
        self.progress.inc(1);
        if read.stored.is_ok() {
            self.losses.responded();
        }
        match read.stored {
            Ok(Some(stored)) => {
                self.summary.exported += 1;
                if let Some(reason) = stored.without_ca_name {
                    self.summary.without_ca_name += 1;
                    self.note(&format!(
                        "Exported {name} with `ca` instead of `ca_name`: {reason}. It can't be regenerated after an import."
                    ));
                }
                Ok(Some(stored.entry))
            }
            Ok(None) => {
                self.absent.push(name);
                Ok(None)
            }
            Err(error) if self.losses.aborts_run(read.started, &error) || !self.keep_going => {
                self.note(&format!("could not read {name}; exported nothing"));
                Err(error.into())
            }
            Err(error) => {
                self.fail(&name, &error.to_string());
                Ok(None)
            }
        }
    }

    /// Reports the absent names: as deleted if the server no longer lists them, as failed otherwise.
    fn resolve_absent(&mut self, listed: Result<Vec<String>, Error>) {
        let is_listed = |name: &String| match &listed {
            Ok(listed) => listed.binary_search(name).is_ok(),
            Err(_) => true,
        };
        for name in mem::take(&mut self.absent) {
            if is_listed(&name) {
                self.fail(
                    &name,
                    "the server lists it, but responds that it does not exist",
                );
            } else {
                self.summary.deleted_meanwhile += 1;
                self.note(&format!(
                    "Skipped {name}: it was deleted, or your permission was removed, during the export."
                ));
            }
        }
        if let Err(error) = listed {
            self.note(&format!(
                "could not determine which of these were deleted or hidden during the export: {error}"
            ));
        }
    }

    fn fail(&mut self, name: &str, reason: &str) {
        self.summary.failed += 1;
        self.note(&format!("failed: {name}: {reason}"));
    }

    fn note(&self, text: &str) {
        self.progress.suspend(|| output::note(text));
    }
}

/// The counts of an export.
#[derive(Default, Serialize)]
struct Summary {
    exported: usize,
    failed: usize,
    deleted_meanwhile: usize,
    without_ca_name: usize,
}

impl Summary {
    /// Returns the counts other than `exported`.
    fn others(&self) -> [(&'static str, usize); 3] {
        [
            (output::FAILED, self.failed),
            (
                "deleted or hidden during the export",
                self.deleted_meanwhile,
            ),
            ("without ca_name", self.without_ca_name),
        ]
    }
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "it maps the error of a result"
)]
fn write_error(cause: io::Error) -> CommandError {
    CommandError::Other(format!("could not write the export: {cause}"))
}

pub(super) const EXAMPLES: &str = "\
# Export everything to a file
keywright export --file credentials.yml
# Export credentials below a path as JSON
keywright export --path /demo --format json --file demo.json
# Compress an export
keywright export --path /demo | gzip >demo.yml.gz";
