//! What people and programs read: data on standard output, all else on standard error.

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

/// What can be written in each form.
pub(crate) trait Shown {
    /// As JSON, which YAML is made of too.
    fn json(&self) -> Result<Box<RawValue>, serde_json::Error>;

    /// For people.
    fn table(&self) -> Table;
}

/// Where and how a verb writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    format: OutputFormat,
}

impl Output {
    /// Writes in this form; or else as a table on a terminal, and as JSON elsewhere.
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

    /// Writes a document to standard output, which is JSON where no other form was asked for, also on a terminal.
    pub(crate) fn show_document(self, json: &RawValue) -> Result<(), Failure> {
        if self.format == OutputFormat::Yaml {
            let yaml = transfer::yaml(json.get())
                .map_err(|cause| Failure::Other(format!("writing YAML: {cause}")))?;
            return self.write(yaml.as_bytes());
        }
        let pretty = pretty(json);
        // Where a program reads it, not a terminal, it has the bytes that it always had.
        let shown = if self.format == OutputFormat::Table || io::stdout().is_terminal() {
            printable_json(&pretty)
        } else {
            Cow::Borrowed(pretty.as_str())
        };
        self.write(shown.as_bytes())?;
        self.write(b"\n")
    }

    /// Writes bytes to standard output as they are, but for colours where there is no terminal.
    ///
    /// A reader that has gone, as `head` does, has what it wanted.
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

    /// Writes bytes to standard output exactly.
    pub(crate) fn write_raw(bytes: &[u8]) -> Result<(), Failure> {
        let raw = Self {
            format: OutputFormat::Json,
        };
        raw.write(bytes)
    }
}

/// Tells people something, on standard error.
pub(crate) fn note(text: &str) {
    let _ = writeln!(anstream::stderr().lock(), "{}", printable(text));
}

/// Tells people what went wrong, on standard error.
pub(crate) fn error(text: &str) {
    let style = Style::new().fg_color(Some(AnsiColor::Red.into())).bold();
    let text = printable(text);
    let _ = writeln!(
        anstream::stderr().lock(),
        "{style}keywright:{style:#} {text}"
    );
}
