//! The progress bar of a transfer, and the report of an import.

use std::{
    io::{self, IsTerminal},
    mem,
    time::Duration,
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressFinish, ProgressStyle};
use serde::Serialize;

use super::entry::Position;
use crate::output::{self, Table};

/// Starts a progress bar with this label. It is hidden unless standard error is a terminal, and leaves its last state when dropped.
#[must_use]
pub fn progress_bar(label: &'static str, total: u64) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden());
    }
    let style = ProgressStyle::with_template(TEMPLATE);
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::new(total)
        .with_style(style)
        .with_message(label)
        .with_finish(ProgressFinish::Abandon);
    bar.enable_steady_tick(TICK);
    bar
}

/// The running report of an import. Prints each failure immediately. If dropped before [`Report::finish`], prints the counts.
pub(crate) struct Report {
    summary: Summary,
    is_finished: bool,
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
            summary: Summary {
                dry_run: is_dry_run,
                not_tried: total,
                ..Summary::default()
            },
            is_finished: false,
            progress: progress_bar(label, total as u64),
        }
    }

    /// Counts an entry that was set or, in a dry run, would be set.
    pub(crate) fn set(&mut self) {
        self.summary.set += 1;
        self.advance();
    }

    pub(crate) fn unchanged(&mut self) {
        self.summary.unchanged += 1;
        self.advance();
    }

    /// Counts and prints an entry whose provenance was refused. The entry is also counted as set or unchanged.
    pub(crate) fn provenance_refused(&mut self, position: Position, name: &str, reason: &str) {
        let name = shortened(name);
        self.progress.suspend(|| {
            output::note(&format!(
                "warning: {name} ({position}): imported without generated_by and parameters: {reason}"
            ));
        });
        self.summary.without_provenance += 1;
    }

    /// Counts and prints a failure.
    pub(crate) fn failed(&mut self, position: Position, name: Option<String>, reason: String) {
        let shown = name.as_deref().map_or("unnamed credential", shortened);
        self.progress
            .suspend(|| output::note(&format!("failed: {shown} ({position}): {reason}")));
        self.summary.failed += 1;
        if self.summary.failures.len() < FAILURES_LISTED_MAX {
            self.summary.failures.push(FailedEntry {
                name: name.map(|name| shortened(&name).to_owned()),
                entry: position.entry,
                line: position.line,
                reason,
            });
        }
        self.advance();
    }

    pub(crate) fn finish(mut self) -> Summary {
        self.is_finished = true;
        mem::take(&mut self.summary)
    }

    fn advance(&mut self) {
        self.summary.not_tried = self.summary.not_tried.saturating_sub(1);
        self.progress.inc(1);
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        if !self.is_finished {
            let Summary { dry_run, set, .. } = self.summary;
            let done = if dry_run { "Would set" } else { "Set" };
            let others = self.summary.others();
            self.progress
                .suspend(|| output::note_counts(done, set, &others));
        }
    }
}

impl Summary {
    /// Returns the counts other than `set`.
    fn others(&self) -> [(&'static str, usize); 4] {
        [
            ("unchanged", self.unchanged),
            (output::FAILED, self.failed),
            ("not attempted", self.not_tried),
            ("without provenance", self.without_provenance),
        ]
    }

    pub(crate) fn table(&self) -> Table {
        let set = if self.dry_run { "would be set" } else { "set" };
        output::table_of_counts(set, self.set, &self.others())
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
