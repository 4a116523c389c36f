//! Tables.

use std::fmt;

use anstyle::Style;
use unicode_width::UnicodeWidthStr;

use super::printable;

/// A table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Table {
    /// Several objects, one per row.
    Rows {
        /// The column headings.
        heads: Vec<&'static str>,
        /// The rows, with one cell per heading.
        rows: Vec<Vec<String>>,
    },
    /// One object with one field per line. A field with several lines is a block below its name.
    Fields(Vec<(String, String)>),
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
            *width = (*width).max(on_one_line(cell).width());
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
    let width = width.unwrap_or_default() + GAP;
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
    fn field_names_are_escaped_and_fit_on_one_line() {
        let field = |name: &str| (name.to_owned(), "x".to_owned());
        let table = Table::Fields(vec![field("a\u{1b}[2J"), field("b\nc\u{9b}")]);
        assert_eq!(plain(&table), "a\\u{1b}[2J  x\nb c\\u{9b}   x\n");
    }
}
