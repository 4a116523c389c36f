//! `keywright export`.

use std::{
    fs::File,
    io::{self, BufWriter, StdoutLock, Write},
    path::PathBuf,
};

use clap::{Args, ValueHint};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use tokio::signal::unix::{SignalKind, signal};

use super::{Context, Example, Failure, Outcome, Verb, help};
use crate::{
    Client, Error,
    new_file::{NewFile, NotWritten},
    output::{self, Shown, Table},
    session::OutputFormat,
    transfer::{EntryWriter, Format, NotRead, Progress, Read, names_below, read_all},
};

/// Write the credentials below a path, with their values, to a file that `import` reads.
///
/// The file is YAML or JSON with a list `credentials` of name, type, value, and metadata where there is some: of each
/// credential the version in use. A certificate names the authority in `ca_name` when that is stored and signed it with its
/// version in use; otherwise the authority's certificate stands in `ca`. The values are not encrypted.
///
/// The credentials are read one after the other: what is changed meanwhile may be in the file as it was before or after.
#[derive(Debug, Args)]
#[command(after_help = help(EXAMPLES))]
pub struct Export {
    /// Export what is below this path alone.
    #[arg(
        long,
        value_name = "PATH",
        default_value = "",
        hide_default_value = true
    )]
    path: String,
    /// Write to a file of mode 0600, which is there when it is complete and not before. Otherwise, standard output.
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: Option<PathBuf>,
    /// Replace the file when it is there.
    #[arg(long, requires = "file")]
    force: bool,
    /// The form: YAML, unless this, `--output` or the end of the file's name says JSON.
    #[arg(long, value_enum, value_name = "FORM")]
    format: Option<Format>,
    /// Go on after a credential that can't be read, name it, and end with 3. Otherwise nothing is exported then.
    #[arg(long)]
    keep_going: bool,
    /// How many requests are on their way at once.
    #[arg(long, value_name = "COUNT", default_value_t = 8, value_parser = clap::value_parser!(u8).range(1..=64))]
    parallel: u8,
}

impl Verb for Export {
    async fn run(self, context: &Context) -> Result<Outcome, Failure> {
        let client = context.client()?;
        let format = self.format(context.settings.output);
        // A file that is being written goes with what is given up.
        tokio::select! {
            summary = self.export(&client, format) => {
                let summary = summary?;
                let is_whole = summary.failed == 0;
                match self.file {
                    Some(_) => context.output.show(&summary)?,
                    None => summary.tell(),
                }
                Ok(if is_whole { Outcome::Done } else { Outcome::InPart })
            }
            () = interruption() => Err(Failure::Interrupted),
        }
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

    async fn export(&self, client: &Client, format: Format) -> Result<Summary, Failure> {
        let target = match &self.file {
            Some(file) => {
                let file = NewFile::begin(file, self.force)?;
                Target::File(BufWriter::new(file.content()?), file)
            }
            None => Target::Output(BufWriter::new(io::stdout().lock())),
        };
        let names = names_below(client, &self.path).await?;
        let progress = Progress::begin("exported", names.len());
        let mut writer = EntryWriter::begin(target, format).map_err(|cause| not_written(&cause))?;
        let mut summary = Summary::default();
        let read = read_all(client, names, self.parallel.into(), |read| {
            progress.advance();
            match self.judge(read, &mut summary, &progress)? {
                Some(written) => writer.write(written).map_err(|cause| not_written(&cause)),
                None => Ok(()),
            }
        });
        if let Err(failure) = read.await {
            // What is on standard output already must not be taken for all; that it can't be written changes nothing.
            let _ = writer.give_up();
            return Err(failure);
        }
        if let Target::File(_, file) = writer.finish().map_err(|cause| not_written(&cause))? {
            file.complete().await?;
        }
        Ok(summary)
    }

    /// What is written of a credential that was read, if anything.
    fn judge(
        &self,
        read: Read,
        summary: &mut Summary,
        progress: &Progress,
    ) -> Result<Option<crate::transfer::Written>, Failure> {
        let name = read.name;
        let told = |text: &str| progress.above(|| output::note(text));
        match read.stored {
            Ok(Some(stored)) => {
                summary.exported += 1;
                if let Some(authority) = stored.signed_before_by {
                    summary.without_ca_name += 1;
                    told(&format!(
                        "{name} was not signed by the version in use of {authority}: it is written with `ca` instead of \
                         `ca_name`, and can't be regenerated where it is imported"
                    ));
                }
                Ok(Some(stored.written))
            }
            Ok(None) => {
                summary.deleted_meanwhile += 1;
                told(&format!("{name} was deleted meanwhile, and is left out"));
                Ok(None)
            }
            Err(NotRead::Refused(error)) if ends_all(&error) || !self.keep_going => {
                told(&format!("{name} can't be read; nothing is exported"));
                Err(error.into())
            }
            Err(not_read) if self.keep_going => {
                summary.failed += 1;
                told(&format!("failed: {name}: {not_read}"));
                Ok(None)
            }
            Err(not_read) => Err(Failure::Other(format!("{name}: {not_read}"))),
        }
    }
}

/// What was exported.
#[derive(Default, Serialize)]
struct Summary {
    exported: usize,
    failed: usize,
    deleted_meanwhile: usize,
    without_ca_name: usize,
}

impl Summary {
    fn tell(&self) {
        output::note(&format!(
            "exported {} credentials, {} failed",
            self.exported, self.failed
        ));
    }
}

impl Shown for Summary {
    fn json(&self) -> Result<Box<RawValue>, serde_json::Error> {
        to_raw_value(self)
    }

    fn table(&self) -> Table {
        let counts = [
            ("exported", self.exported, true),
            ("failed", self.failed, true),
            ("deleted meanwhile", self.deleted_meanwhile, false),
            ("without ca_name", self.without_ca_name, false),
        ];
        let shown = counts
            .into_iter()
            .filter(|(_, count, is_shown)| *is_shown || *count > 0);
        let members = shown.map(|(name, count, _)| (name.to_owned(), count.to_string()));
        Table::Members(members.collect())
    }
}

/// Where an export goes.
enum Target {
    File(BufWriter<File>, NewFile),
    Output(BufWriter<StdoutLock<'static>>),
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::File(content, _) => content.write(bytes),
            Self::Output(output) => output.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::File(content, _) => content.flush(),
            Self::Output(output) => output.flush(),
        }
    }
}

impl From<NotWritten> for Failure {
    fn from(not_written: NotWritten) -> Self {
        match not_written {
            NotWritten::Failed(failure) => failure.into(),
            NotWritten::Exists(_) => Self::Other(not_written.to_string()),
        }
    }
}

fn not_written(cause: &io::Error) -> Failure {
    Failure::Other(format!("the export can't be written: {cause}"))
}

/// Whether no other credential would fare better.
fn ends_all(error: &Error) -> bool {
    error.is_unavailable() || error.is_not_allowed()
}

/// Waits until the process is told to end.
async fn interruption() {
    let listening = (
        signal(SignalKind::interrupt()),
        signal(SignalKind::terminate()),
        signal(SignalKind::hangup()),
    );
    let (Ok(mut interrupt), Ok(mut terminate), Ok(mut hang_up)) = listening else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        _ = hang_up.recv() => {}
    }
}

/// What help shows.
pub(super) const EXAMPLES: &[Example] = &[
    Example {
        does: "Export everything to a file",
        line: "keywright export --file credentials.yml",
        before: &[],
    },
    Example {
        does: "Export what is below a path as JSON",
        line: "keywright export --path /demo --format json --file demo.json",
        before: &[],
    },
    Example {
        does: "Hand the export to another program",
        line: "keywright export --path /demo | gzip >demo.yml.gz",
        before: &[],
    },
];
