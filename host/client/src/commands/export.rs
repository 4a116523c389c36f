//! `keywright export`.

use std::{fmt::Write, io, mem, path::PathBuf};

use clap::{Args, ValueHint};
use futures_util::StreamExt;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use super::{Context, Example, Failure, Outcome, Verb, help};
use crate::{
    Client, Error,
    new_file::{NewFile, NotWritten},
    output::{self, Shown, Table},
    session::OutputFormat,
    transfer::{
        Authorities, BackgroundWriter, Endings, EntryWriter, Format, NotRead, Progress, Read,
        Signer, Written, names_below, read_all,
    },
};

/// Write the credentials below a path, with their values, to a file that `import` reads.
///
/// The file is YAML or JSON with a list `credentials` of name, type, value, and metadata where there is some: of each
/// credential the version in use. A certificate names the authority in `ca_name` when that is stored and signed it with its
/// version in use; otherwise the authority's certificate stands in `ca`. The values are not encrypted.
///
/// The credentials are read one after the other: what is changed meanwhile may be in the file as it was before or after. What
/// is deleted meanwhile is left out, and counted. A certificate whose only version is transitional is not exported, since `find`
/// does not list it either, and is not told. It ends with 3 when something else is not in the file.
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
    /// Replace the file when it is there, and follow symbolic links.
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
        let summary = self.export(&client, format).await?;
        let is_whole = summary.failed == 0;
        match self.file {
            Some(_) => context.output.show(&summary)?,
            None => summary.tell(),
        }
        Ok(if is_whole {
            Outcome::Done
        } else {
            Outcome::InPart
        })
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

    /// Dropped before it is at its end, it leaves no file, and on standard output nothing that could be taken for all.
    async fn export(&self, client: &Client, format: Format) -> Result<Summary, Failure> {
        let begin_file = |file: &PathBuf| NewFile::begin(file, self.force);
        let file = self.file.as_ref().map(begin_file).transpose()?;
        let names = names_below(client, &self.path).await?;
        let output = match &file {
            Some(file) => BackgroundWriter::begin(file.content()?),
            None => BackgroundWriter::begin(io::stdout()),
        };
        let mut writer = output
            .and_then(|output| EntryWriter::begin(output, format))
            .map_err(not_written)?;
        let endings = Endings::default();
        let mut reading = Reading {
            keep_going: self.keep_going,
            progress: Progress::begin("exported", names.len()),
            endings: &endings,
            absent: Vec::new(),
            summary: Summary::default(),
        };
        let authorities = Authorities::default();
        let mut credentials = read_all(client, &authorities, &endings, names, self.parallel.into());
        while let Some(read) = credentials.next().await {
            if let Some(written) = reading.judge(read)? {
                writer.write(written).map_err(not_written)?;
                writer.output().hand_on().await.map_err(not_written)?;
            }
        }
        if !reading.absent.is_empty() {
            reading.judge_absent(names_below(client, &self.path).await);
        }
        let output = writer.finish().map_err(not_written)?;
        output.finish().await.map_err(not_written)?;
        if let Some(file) = file {
            file.complete().await?;
        }
        Ok(reading.summary)
    }
}

/// An export while it is under way.
struct Reading<'a> {
    keep_going: bool,
    progress: Progress,
    endings: &'a Endings,
    /// What the server said is not there, though it had listed it.
    absent: Vec<String>,
    summary: Summary,
}

impl Reading<'_> {
    /// What is written of a credential that was read, if anything.
    fn judge(&mut self, read: Read) -> Result<Option<Written>, Failure> {
        let Read {
            name,
            stored,
            begun,
        } = read;
        self.progress.advance();
        if !matches!(stored, Err(NotRead::Refused(_))) {
            self.endings.answered();
        }
        match stored {
            Ok(Some(stored)) => {
                self.summary.exported += 1;
                if let Some(signer) = stored.not_named {
                    self.summary.without_ca_name += 1;
                    self.tell_not_named(&name, &signer);
                }
                Ok(Some(stored.written))
            }
            Ok(None) => {
                self.absent.push(name);
                Ok(None)
            }
            Err(NotRead::Refused(error))
                if self.endings.ends_all(begun, &error) || !self.keep_going =>
            {
                self.tell(&format!("{name} can't be read; nothing is exported"));
                Err(error.into())
            }
            Err(not_read) if self.keep_going => {
                self.fail(&name, &not_read.to_string());
                Ok(None)
            }
            Err(not_read) => Err(Failure::Other(format!("{name}: {not_read}"))),
        }
    }

    /// Tells what became of those that were not there when it was their turn. They are known to have been deleted when the
    /// server does not list them any more either.
    fn judge_absent(&mut self, listed: Result<Vec<String>, Error>) {
        let is_listed = |name: &String| match &listed {
            Ok(listed) => listed.binary_search(name).is_ok(),
            Err(_) => true,
        };
        for name in mem::take(&mut self.absent) {
            if is_listed(&name) {
                self.fail(&name, "the server lists it, and says that it is not there");
            } else {
                self.summary.deleted_meanwhile += 1;
                self.tell(&format!("{name} was deleted meanwhile, and is left out"));
            }
        }
        if let Err(error) = listed {
            self.tell(&format!(
                "it can't be told what of this was deleted meanwhile: {error}"
            ));
        }
    }

    fn fail(&mut self, name: &str, reason: &str) {
        self.summary.failed += 1;
        self.tell(&format!("failed: {name}: {reason}"));
    }

    fn tell_not_named(&self, name: &str, signer: &Signer) {
        let reason = match signer {
            Signer::Before(authority) => {
                format!("was not signed by the version in use of {authority}")
            }
            Signer::Hidden(authority) => {
                format!("was signed by {authority}, which is not there or may not be read")
            }
        };
        self.tell(&format!(
            "{name} {reason}: it is written with `ca` instead of `ca_name`, and can't be regenerated where it is imported"
        ));
    }

    fn tell(&self, text: &str) {
        self.progress.above(|| output::note(text));
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
        let Self {
            exported,
            failed,
            deleted_meanwhile,
            without_ca_name,
        } = self;
        let mut told = format!("exported {exported} credentials, {failed} failed");
        for (count, what) in [
            (deleted_meanwhile, "deleted meanwhile"),
            (without_ca_name, "without ca_name"),
        ] {
            if *count > 0 {
                // Writing to a text does not fail.
                let _ = write!(told, ", {count} {what}");
            }
        }
        output::note(&told);
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

impl From<NotWritten> for Failure {
    fn from(not_written: NotWritten) -> Self {
        match not_written {
            NotWritten::Failed(failure) => failure.into(),
            NotWritten::Exists(_) | NotWritten::IsLink(_) => Self::Other(not_written.to_string()),
        }
    }
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "it maps the error of a result"
)]
fn not_written(cause: io::Error) -> Failure {
    Failure::Other(format!("the export can't be written: {cause}"))
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
