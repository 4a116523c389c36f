//! Output: data on standard output, messages on standard error.

mod pretty;
mod printable;
mod prompt;
mod table;

use std::{
    borrow::Cow,
    io::{self, IsTerminal, Write},
};

use anstyle::{AnsiColor, Style};
use serde_json::value::RawValue;

use crate::{commands::Failure, session::OutputFormat, transfer};

use pretty::pretty;
pub(crate) use printable::printable;
use printable::printable_json;
pub(crate) use prompt::{confirm, line, secret_line, secret_of_input};
pub(crate) use table::Table;

/// Data that can be written in each output format.
pub(crate) trait Shown {
    /// Returns the data as JSON, from which YAML is derived.
    fn json(&self) -> Result<Box<RawValue>, serde_json::Error>;

    /// Returns the data as a table.
    fn table(&self) -> Table;
}

/// The standard output of a verb.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    format: OutputFormat,
}

impl Output {
    /// Creates an output with this format. The default is a table on a terminal, JSON otherwise.
    pub(crate) fn new(format: Option<OutputFormat>) -> Self {
        let usual = if io::stdout().is_terminal() {
            OutputFormat::Table
        } else {
            OutputFormat::Json
        };
        Self {
            format: format.unwrap_or(usual),
        }
    }

    /// Writes data to standard output.
    pub(crate) fn show(self, shown: &impl Shown) -> Result<(), Failure> {
        match self.format {
            OutputFormat::Json | OutputFormat::Yaml => self.show_document(&shown.json()?),
            OutputFormat::Table => self.write(shown.table().to_string().as_bytes()),
        }
    }

    /// Writes a document to standard output: as YAML if requested, otherwise as JSON, even on a terminal.
    pub(crate) fn show_document(self, json: &RawValue) -> Result<(), Failure> {
        if self.format == OutputFormat::Yaml {
            let yaml = transfer::yaml(json.get())
                .map_err(|cause| Failure::Other(format!("writing YAML: {cause}")))?;
            return self.write(yaml.as_bytes());
        }
        let pretty = pretty(json);
        // Programs get the bytes unescaped.
        let shown = if self.format == OutputFormat::Table || io::stdout().is_terminal() {
            printable_json(&pretty)
        } else {
            Cow::Borrowed(pretty.as_str())
        };
        self.write(shown.as_bytes())?;
        self.write(b"\n")
    }

    /// Writes bytes to standard output. Strips colors from tables if standard output is not a terminal.
    ///
    /// A closed pipe is not an error: readers such as `head` stop early.
    pub(crate) fn write(self, bytes: &[u8]) -> Result<(), Failure> {
        let mut stdout = anstream::stdout().lock();
        let written = match self.format {
            OutputFormat::Table => stdout.write_all(bytes),
            OutputFormat::Json | OutputFormat::Yaml => io::stdout().lock().write_all(bytes),
        };
        written.and_then(|()| stdout.flush()).or_else(|cause| {
            if cause.kind() == io::ErrorKind::BrokenPipe {
                Ok(())
            } else {
                Err(Failure::Other(format!(
                    "writing to standard output: {cause}"
                )))
            }
        })
    }

    /// Writes bytes to standard output unchanged.
    pub(crate) fn write_raw(bytes: &[u8]) -> Result<(), Failure> {
        let raw = Self {
            format: OutputFormat::Json,
        };
        raw.write(bytes)
    }
}

/// Prints a message to standard error.
pub(crate) fn note(text: &str) {
    let _ = writeln!(anstream::stderr().lock(), "{}", printable(text));
}

/// Prints an error to standard error.
pub(crate) fn error(text: &str) {
    let style = Style::new().fg_color(Some(AnsiColor::Red.into())).bold();
    let text = printable(text);
    let _ = writeln!(
        anstream::stderr().lock(),
        "{style}keywright:{style:#} {text}"
    );
}
