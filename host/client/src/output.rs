//! Output: data on standard output, messages on standard error, with indented JSON and text that is safe for terminals.

use std::{
    borrow::Cow,
    fmt::{self, Write as _},
    io::{self, IsTerminal, Write as _},
};

use anstyle::{AnsiColor, Style};
use keywright_json::{indented, is_control_or_invisible};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use unicode_width::UnicodeWidthStr;
use zeroize::Zeroizing;

use crate::{command_error::CommandError, session::OutputFormat, transfer};

/// The standard output of a command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    format: OutputFormat,
}

impl Output {
    /// Creates an output with this format. The default is a table on a terminal, JSON otherwise.
    pub(crate) fn new(format: Option<OutputFormat>) -> Self {
        let default = if io::stdout().is_terminal() {
            OutputFormat::Table
        } else {
            OutputFormat::Json
        };
        Self {
            format: format.unwrap_or(default),
        }
    }

    /// Writes data to standard output: as a table, or as JSON, from which YAML is derived.
    pub(crate) fn show(
        self,
        data: &(impl Serialize + ?Sized),
        table: impl FnOnce() -> Table,
    ) -> Result<(), CommandError> {
        match self.format {
            OutputFormat::Json | OutputFormat::Yaml => self.show_document(&to_raw_value(data)?),
            // Strips colors if standard output is not a terminal.
            OutputFormat::Table => write(anstream::stdout(), table().to_string().as_bytes()),
        }
    }

    /// Writes a document to standard output: as YAML if requested, otherwise as JSON, even on a terminal.
    pub(crate) fn show_document(self, json: &RawValue) -> Result<(), CommandError> {
        if self.format == OutputFormat::Yaml {
            let yaml = transfer::yaml(json.get())
                .map_err(|cause| CommandError::Other(format!("writing YAML: {cause}")))?;
            return write_raw(yaml.as_bytes());
        }
        let indented = Zeroizing::new(indented(json).map_err(serde_json::Error::from)?);
        // Escape control characters only for people. Programs need the original JSON.
        let shown = if self.format == OutputFormat::Table || io::stdout().is_terminal() {
            printable_json(&indented)
        } else {
            Cow::Borrowed(indented.as_str())
        };
        write_raw(shown.as_bytes())?;
        write_raw(b"\n")
    }
}

/// Writes bytes to standard output unchanged.
pub(crate) fn write_raw(bytes: &[u8]) -> Result<(), CommandError> {
    write(io::stdout(), bytes)
}

/// Writes bytes to standard output. A closed pipe is not an error: readers such as `head` stop early.
fn write(mut stdout: impl io::Write, bytes: &[u8]) -> Result<(), CommandError> {
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(cause) if cause.kind() != io::ErrorKind::BrokenPipe => Err(CommandError::Other(
            format!("writing to standard output: {cause}"),
        )),
        _ => Ok(()),
    }
}

/// Prints a message to standard error.
pub(crate) fn note(text: &str) {
    let _ = writeln!(anstream::stderr().lock(), "{}", message(text));
}

pub(crate) fn error(text: &str) {
    let style = Style::new().fg_color(Some(AnsiColor::Red.into())).bold();
    let text = message(text);
    let _ = writeln!(
        anstream::stderr().lock(),
        "{style}keywright:{style:#} {text}"
    );
}

/// Returns the text of a message. Indents every line but the first, so that text from a server or a file can't look like another
/// message.
fn message(text: &str) -> String {
    printable(text).replace('\n', "\n    ")
}

/// Returns a number of credentials, such as `1 credential`.
pub(crate) fn credentials(count: usize) -> String {
    match count {
        1 => "1 credential".to_owned(),
        many => format!("{many} credentials"),
    }
}

/// Reports counts: `Deleted 3 credentials, 1 failed.` Omits the other counts that are 0, except [`FAILED`].
pub(crate) fn note_counts(done: &str, count: usize, others: &[(&str, usize)]) {
    let mut text = format!("{done} {}", credentials(count));
    for (label, count) in others.iter().filter(|count| is_shown(count)) {
        // Writing to a string does not fail.
        let _ = write!(text, ", {count} {label}");
    }
    note(&format!("{text}."));
}

/// Returns a table of the counts that [`note_counts`] reports.
pub(crate) fn table_of_counts(done: &str, count: usize, others: &[(&str, usize)]) -> Table {
    let shown = others.iter().filter(|count| is_shown(count));
    let counts = [(done, count)].into_iter().chain(shown.copied());
    Table::Fields(
        counts
            .map(|(label, count)| field(label, count.to_string()))
            .collect(),
    )
}

fn is_shown((label, count): &(&str, usize)) -> bool {
    *count > 0 || *label == FAILED
}

/// The label of the number of failures.
pub(crate) const FAILED: &str = "failed";

/// The layout of data in table format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Table {
    /// Several objects, one per row.
    Rows {
        heads: Vec<&'static str>,
        /// The rows, with one cell per heading.
        rows: Vec<Vec<String>>,
    },
    /// One object with one field per line. A field with several lines is a block below its name.
    Fields(Vec<(String, String)>),
}

pub(crate) fn field(name: &str, text: impl Into<String>) -> (String, String) {
    (name.to_owned(), text.into())
}

impl fmt::Display for Table {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rows { heads, rows } => write_rows(formatter, heads, rows),
            Self::Fields(fields) => write_fields(formatter, fields),
        }
    }
}

fn write_rows(
    formatter: &mut fmt::Formatter<'_>,
    heads: &[&str],
    rows: &[Vec<String>],
) -> fmt::Result {
    let mut widths: Vec<usize> = heads.iter().map(|head| head.width()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(on_one_line(cell).width().min(WIDTH_MAX));
        }
    }
    let head: Vec<String> = heads.iter().map(|head| (*head).to_owned()).collect();
    write_row(formatter, &head, &widths, BOLD)?;
    for row in rows {
        write_row(formatter, row, &widths, Style::new())?;
    }
    Ok(())
}

fn write_row(
    formatter: &mut fmt::Formatter<'_>,
    cells: &[String],
    widths: &[usize],
    style: Style,
) -> fmt::Result {
    let last = cells.len().saturating_sub(1);
    for (number, (cell, width)) in cells.iter().zip(widths).enumerate() {
        let cell = on_one_line(cell);
        write!(formatter, "{style}{cell}{style:#}")?;
        if number < last {
            let blanks = width.saturating_sub(cell.width()) + GAP;
            write!(formatter, "{:blanks$}", "")?;
        }
    }
    writeln!(formatter)
}

fn write_fields(formatter: &mut fmt::Formatter<'_>, fields: &[(String, String)]) -> fmt::Result {
    let names: Vec<String> = fields.iter().map(|(name, _)| on_one_line(name)).collect();
    let width = names.iter().map(|name| name.width()).max();
    let width = width.unwrap_or_default().min(WIDTH_MAX) + GAP;
    for (name, (_, text)) in names.iter().zip(fields) {
        let text = printable(text);
        let blanks = width.saturating_sub(name.width());
        if text.contains('\n') {
            writeln!(formatter, "{BOLD}{name}{BOLD:#}")?;
            for line in text.lines() {
                writeln!(formatter, "  {line}")?;
            }
        } else {
            writeln!(formatter, "{BOLD}{name}{BOLD:#}{:blanks$}{text}", "")?;
        }
    }
    Ok(())
}

fn on_one_line(cell: &str) -> String {
    printable(cell).replace(['\n', '\t'], " ")
}

const BOLD: Style = Style::new().bold();

/// The number of spaces between two columns.
const GAP: usize = 2;

/// The maximum width of a column. A wider cell moves the rest of its row to the right.
const WIDTH_MAX: usize = 1_000;

/// Escapes characters that could control a terminal or be invisible, except newlines and tabs.
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, |escaped, character| {
        escaped.extend(character.escape_unicode());
    })
}

/// Escapes the same characters as [`printable`], in JSON. The JSON value is unchanged, because the characters only occur in
/// strings.
#[must_use]
pub fn printable_json(json: &str) -> Cow<'_, str> {
    escaped(json, |escaped, character| {
        for unit in character.encode_utf16(&mut [0; 2]) {
            // Writing to a string does not fail.
            let _ = write!(escaped, "\\u{unit:04x}");
        }
    })
}

fn escaped(text: &str, escape: impl Fn(&mut String, char)) -> Cow<'_, str> {
    if text.chars().all(is_harmless) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        if is_harmless(character) {
            escaped.push(character);
        } else {
            escape(&mut escaped, character);
        }
    }
    Cow::Owned(escaped)
}

pub(crate) fn is_harmless(character: char) -> bool {
    matches!(character, '\n' | '\t') || !is_control_or_invisible(character)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(table: &Table) -> String {
        anstream::adapter::strip_str(&table.to_string()).to_string()
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let table = Table::Rows {
            heads: vec!["NAME", "CREATED"],
            rows: vec![
                vec!["/a/日本".to_owned(), "now".to_owned()],
                vec!["/b\u{1b}".to_owned(), "then\nor later".to_owned()],
            ],
        };
        assert_eq!(
            plain(&table),
            "NAME      CREATED\n/a/日本   now\n/b\\u{1b}  then or later\n"
        );
    }

    #[test]
    fn a_field_of_several_lines_is_a_block() {
        let field = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        let table = Table::Fields(vec![
            field("name", "/a"),
            field("certificate", "one\ntwo\n"),
            field("type", "x"),
        ]);
        assert_eq!(
            plain(&table),
            "name         /a\ncertificate\n  one\n  two\ntype         x\n"
        );
    }

    #[test]
    fn terminal_control_and_invisible_characters_are_escaped() {
        for (text, expected) in [
            ("a é\n\tb", "a é\n\tb"),
            ("\u{1b}[31mred", "\\u{1b}[31mred"),
            ("a\rb\u{7}\u{9b}", "a\\u{d}b\\u{7}\\u{9b}"),
            ("\u{202e}gnp.exe", "\\u{202e}gnp.exe"),
            ("a\u{200b}b\u{2028}", "a\\u{200b}b\\u{2028}"),
        ] {
            assert_eq!(printable(text), expected);
        }
    }

    #[test]
    fn escaped_json_has_the_same_value() {
        let text = "a\u{7f}\u{200b}\u{2028}\u{e0041}é";
        let json = serde_json::to_string(text).unwrap();
        let shown = printable_json(&json);
        assert_eq!(shown, r#""a\u007f\u200b\u2028\udb40\udc41é""#);
        assert_eq!(keywright_json::text(&shown).unwrap(), text);
    }
}
