//! The report of an import.

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use super::{entry::Position, progress::Progress};
use crate::output::{self, Shown, Table};

/// The running report of an import. Prints each failure at once and, if dropped unfinished, the counts.
pub(crate) struct Report {
    /// `None` once finished.
    summary: Option<Summary>,
    total: usize,
    progress: Progress,
}

/// The summary of an import.
#[derive(Default, Serialize)]
pub(crate) struct Summary {
    /// Whether this is a dry run; then `set` counts entries that could be set.
    pub(crate) dry_run: bool,
    /// The number of entries that were set.
    pub(crate) set: usize,
    /// The number of entries that were skipped as unchanged.
    pub(crate) unchanged: usize,
    /// The number of entries that failed.
    pub(crate) failed: usize,
    /// The number of entries that were not attempted, because the import stopped.
    pub(crate) not_tried: usize,
    /// The first [`FAILURES_LISTED_MAX`] failures.
    failures: Vec<FailedEntry>,
}

/// An entry that failed.
#[derive(Serialize)]
struct FailedEntry {
    name: Option<String>,
    entry: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    reason: String,
}

impl Report {
    /// Starts a report on this number of entries.
    pub(crate) fn begin(total: usize, is_dry_run: bool) -> Self {
        let what = if is_dry_run { "checked" } else { "imported" };
        Self {
            summary: Some(Summary {
                dry_run: is_dry_run,
                ..Summary::default()
            }),
            total,
            progress: Progress::begin(what, total),
        }
    }

    /// Counts an entry that was set or, in a dry run, could be set.
    pub(crate) fn set(&mut self) {
        self.count(|summary| summary.set += 1);
    }

    /// Counts an unchanged entry.
    pub(crate) fn unchanged(&mut self) {
        self.count(|summary| summary.unchanged += 1);
    }

    /// Counts and prints a failure.
    pub(crate) fn failed(&mut self, position: Position, name: Option<String>, reason: String) {
        let shown = name.as_deref().map_or("without a name", shortened);
        self.progress
            .above(|| output::note(&format!("failed: {shown} ({position}): {reason}")));
        self.count(|summary| {
            summary.failed += 1;
            if summary.failures.len() < FAILURES_LISTED_MAX {
                summary.failures.push(FailedEntry {
                    name: name.map(|name| shortened(&name).to_owned()),
                    entry: position.entry,
                    line: position.line,
                    reason,
                });
            }
        });
    }

    /// Returns the summary.
    pub(crate) fn finish(mut self) -> Summary {
        self.end().unwrap_or_default()
    }

    fn count(&mut self, count: impl FnOnce(&mut Summary)) {
        if let Some(summary) = &mut self.summary {
            count(summary);
        }
        self.progress.advance();
    }

    fn end(&mut self) -> Option<Summary> {
        let mut summary = self.summary.take()?;
        let tried = summary.set + summary.unchanged + summary.failed;
        summary.not_tried = self.total.saturating_sub(tried);
        Some(summary)
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        if let Some(summary) = self.end() {
            let counts = summary.counts();
            let counts = counts.map(|(name, count)| format!("{name}: {count}"));
            let counts = counts.collect::<Vec<_>>().join(", ");
            self.progress.above(|| output::note(&counts));
        }
    }
}

impl Summary {
    /// Returns the counts to show.
    fn counts(&self) -> impl Iterator<Item = (&'static str, usize)> {
        let set = if self.dry_run { "could be set" } else { "set" };
        let counts = [
            (set, self.set, true),
            ("unchanged", self.unchanged, self.unchanged > 0),
            ("failed", self.failed, true),
            ("not attempted", self.not_tried, self.not_tried > 0),
        ];
        let shown = counts.into_iter().filter(|(_, _, is_shown)| *is_shown);
        shown.map(|(name, count, _)| (name, count))
    }
}

impl Shown for Summary {
    fn json(&self) -> Result<Box<RawValue>, serde_json::Error> {
        to_raw_value(self)
    }

    fn table(&self) -> Table {
        let counts = self.counts();
        let fields = counts.map(|(name, count)| (name.to_owned(), count.to_string()));
        Table::Fields(fields.collect())
    }
}

/// Truncates a name for output, because a refused name can be arbitrarily long.
fn shortened(name: &str) -> &str {
    match name.char_indices().nth(SHOWN_CHARACTERS_MAX) {
        Some((end, _)) => name.get(..end).unwrap_or_default(),
        None => name,
    }
}

/// The maximum number of failures in the summary. Standard error has all of them.
const FAILURES_LISTED_MAX: usize = 1_000;

/// The maximum length of a shown name. Valid names have at most 255 characters.
const SHOWN_CHARACTERS_MAX: usize = 300;
