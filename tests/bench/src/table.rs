//! The printed tables.

use std::fmt;

use crate::load::Cost;

/// The figures of a measurement, row by row.
pub(crate) struct Table {
    title: String,
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Returns an empty table; the first column names the rows.
    pub(crate) fn new(title: impl Into<String>, columns: &[&str]) -> Self {
        Self {
            title: title.into(),
            columns: columns.iter().map(|&column| column.to_owned()).collect(),
            rows: Vec::new(),
        }
    }

    /// Returns an empty table of the cost of requests.
    pub(crate) fn of_costs(title: impl Into<String>) -> Self {
        let columns = [
            "",
            "server",
            "requests/s",
            "CPU µs",
            "switches",
            "flushes",
            "p50 µs",
            "p99 µs",
            "goals",
        ];
        Self::new(title, &columns)
    }

    /// Adds a row to a table of costs.
    pub(crate) fn cost(&mut self, what: &str, server: &str, cost: &Cost, goals: &[String]) {
        let times = cost.times();
        self.row([
            what.to_owned(),
            server.to_owned(),
            format!("{:.0}", cost.per_second()),
            format!("{:.1}", cost.processor_micros()),
            format!("{:.2}", cost.switches()),
            format!("{:.2}", cost.flushes()),
            format!("{:.0}", times.median()),
            format!("{:.0}", times.percentile(99)),
            if goals.is_empty() {
                no_goal()
            } else {
                goals.join("; ")
            },
        ]);
    }

    /// Adds a row.
    pub(crate) fn row<const COLUMNS: usize>(&mut self, cells: [String; COLUMNS]) {
        self.rows.push(cells.into());
    }

    fn width(&self, column: usize) -> usize {
        let cells = self
            .rows
            .iter()
            .chain([&self.columns])
            .filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    }

    fn line(&self, formatter: &mut fmt::Formatter<'_>, cells: &[String]) -> fmt::Result {
        for (column, cell) in cells.iter().enumerate() {
            let width = self.width(column);
            match column {
                0 => write!(formatter, "  {cell:<width$}")?,
                _ => write!(formatter, "  {cell:>width$}")?,
            }
        }
        writeln!(formatter)
    }
}

impl fmt::Display for Table {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "{}", self.title)?;
        self.line(formatter, &self.columns)?;
        self.rows
            .iter()
            .try_for_each(|row| self.line(formatter, row))
    }
}

/// The threshold that a figure must meet.
#[derive(Clone, Copy)]
pub(crate) enum Threshold {
    AtLeast(f64),
    AtMost(f64),
    /// From the first up to and including the second.
    Within(f64, f64),
}

impl Threshold {
    /// Returns the goal, and whether a figure meets it.
    pub(crate) fn verdict(self, figure: f64) -> String {
        let (words, is_met) = match self {
            Self::AtLeast(bound) => (format!(">= {bound}"), figure >= bound),
            Self::AtMost(bound) => (format!("<= {bound}"), figure <= bound),
            Self::Within(least, most) => (
                format!("{least} to {most}"),
                (least..=most).contains(&figure),
            ),
        };
        format!("{words}: {}", if is_met { "met" } else { "NOT MET" })
    }
}

/// Returns the cell of a row without a goal.
pub(crate) fn no_goal() -> String {
    "-".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_at_its_bound_meets_the_goal() {
        assert_eq!(Threshold::AtLeast(0.5).verdict(0.5), ">= 0.5: met");
        assert_eq!(Threshold::AtMost(3.0).verdict(3.0), "<= 3: met");
        assert_eq!(Threshold::Within(0.5, 1.0).verdict(0.5), "0.5 to 1: met");
        let actual = Threshold::Within(0.5, 1.0).verdict(1.1);
        assert_eq!(actual, "0.5 to 1: NOT MET");
    }
}
