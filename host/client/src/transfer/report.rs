//! The progress bar of a transfer, and the report of an import.

use std::{
    fmt::Write,
    io::{self, IsTerminal},
    time::Duration,
};

use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};
use serde::Serialize;

use super::entry::Position;
use crate::output::{self, Table, field};

/// Starts a progress bar with this label. It is hidden unless standard error is a terminal, and leaves its last state when dropped.
pub(crate) fn progress_bar(label: &'static str, total: usize) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template(TEMPLATE);
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::new(u64::try_from(total).unwrap_or(u64::MAX))
        .with_style(style)
        .with_message(label)
        .with_finish(ProgressFinish::Abandon);
    bar.enable_steady_tick(TICK);
    bar
}

/// The running report of an import. Prints each failure immediately. If dropped before [`Report::finish`], prints the counts.
pub(crate) struct Report {
    /// `None` once finished.
    summary: Option<Summary>,
    total: usize,
    progress: ProgressBar,
}

#[derive(Default, Serialize)]
pub(crate) struct Summary {
    /// Whether this is a dry run; then `set` counts entries that would be set.
    pub(crate) dry_run: bool,
    pub(crate) set: usize,
    /// The number of entries that were skipped as unchanged.
    pub(crate) unchanged: usize,
    pub(crate) failed: usize,
    /// The number of entries that were not attempted, because the import stopped.
    pub(crate) not_tried: usize,
    /// The number of entries that were imported without their provenance, because the server refused it.
    pub(crate) without_provenance: usize,
    /// The first [`FAILURES_LISTED_MAX`] failures.
    failures: Vec<FailedEntry>,
}

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
        let label = if is_dry_run { "checked" } else { "imported" };
        Self {
            summary: Some(Summary {
                dry_run: is_dry_run,
                ..Summary::default()
            }),
            total,
            progress: progress_bar(label, total),
        }
    }

    /// Counts an entry that was set or, in a dry run, would be set.
    pub(crate) fn set(&mut self) {
        self.count(|summary| summary.set += 1);
    }

    pub(crate) fn unchanged(&mut self) {
        self.count(|summary| summary.unchanged += 1);
    }

    /// Counts and prints an entry whose provenance was refused. The entry is also counted as set or unchanged.
    pub(crate) fn provenance_refused(&mut self, position: Position, name: &str, reason: &str) {
        let name = shortened(name);
        self.progress.suspend(|| {
            output::note(&format!(
                "warning: {name} ({position}): imported without generated_by and parameters: {reason}"
            ));
        });
        if let Some(summary) = &mut self.summary {
            summary.without_provenance += 1;
        }
    }

    /// Counts and prints a failure.
    pub(crate) fn failed(&mut self, position: Position, name: Option<String>, reason: String) {
        let shown = name.as_deref().map_or("unnamed credential", shortened);
        self.progress
            .suspend(|| output::note(&format!("failed: {shown} ({position}): {reason}")));
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

    pub(crate) fn finish(mut self) -> Summary {
        self.end().unwrap_or_default()
    }

    fn count(&mut self, count: impl FnOnce(&mut Summary)) {
        if let Some(summary) = &mut self.summary {
            count(summary);
        }
        self.progress.inc(1);
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
            let counts = summary.sentence();
            self.progress.suspend(|| output::note(&counts));
        }
    }
}

impl Summary {
    fn sentence(&self) -> String {
        let verb = if self.dry_run { "Would set" } else { "Set" };
        let mut sentence = format!("{verb} {}", output::credentials(self.set));
        for (name, count) in self.counts().skip(1) {
            // Writing to a string does not fail.
            let _ = write!(sentence, ", {count} {name}");
        }
        sentence.push('.');
        sentence
    }

    fn counts(&self) -> impl Iterator<Item = (&'static str, usize)> {
        let set = if self.dry_run { "would be set" } else { "set" };
        let counts = [
            (set, self.set, true),
            ("unchanged", self.unchanged, self.unchanged > 0),
            ("failed", self.failed, true),
            ("not attempted", self.not_tried, self.not_tried > 0),
            (
                "without provenance",
                self.without_provenance,
                self.without_provenance > 0,
            ),
        ];
        let shown = counts.into_iter().filter(|(_, _, is_shown)| *is_shown);
        shown.map(|(name, count, _)| (name, count))
    }

    pub(crate) fn table(&self) -> Table {
        let fields = self.counts();
        Table::Fields(
            fields
                .map(|(name, count)| field(name, count.to_string()))
                .collect(),
        )
    }
}

/// Truncates a name for output, because a refused name can be arbitrarily long.
fn shortened(name: &str) -> &str {
    match name.char_indices().nth(SHOWN_CHARACTERS_MAX) {
        Some((end, _)) => name.get(..end).unwrap_or_default(),
        None => name,
    }
}

const TEMPLATE: &str = "{msg} {wide_bar} {human_pos} of {human_len}, {per_sec}, {eta} left";

/// The interval of redrawing without progress.
const TICK: Duration = Duration::from_millis(250);

/// The maximum number of failures in the summary. Standard error has all of them.
const FAILURES_LISTED_MAX: usize = 1_000;

/// The maximum length of a shown name. Valid names have at most 255 characters.
const SHOWN_CHARACTERS_MAX: usize = 300;
