//! What an import has done, and what failed.

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use super::{entry::Place, progress::Progress};
use crate::output::{self, Shown, Table};

/// What an import has done so far. Each failure is told on standard error when it comes, and so is what was done when it is
/// dropped before it is finished.
pub(crate) struct Report {
    /// What it did; none once it is finished.
    summary: Option<Summary>,
    total: usize,
    progress: Progress,
}

/// What an import has done.
#[derive(Default, Serialize)]
pub(crate) struct Summary {
    /// Whether nothing was written, and `set` are those that could be.
    pub(crate) dry_run: bool,
    /// How many were set.
    pub(crate) set: usize,
    /// How many the server had already, where those are left alone.
    pub(crate) unchanged: usize,
    /// How many were not set.
    pub(crate) failed: usize,
    /// How many were not tried, as the import could not go on.
    pub(crate) not_tried: usize,
    /// Which were not set: the first [`FAILURES_LISTED_MAX`].
    failures: Vec<FailedEntry>,
}

/// One that was not set.
#[derive(Serialize)]
struct FailedEntry {
    name: Option<String>,
    entry: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    reason: String,
}

impl Report {
    /// Begins to report on so many entries.
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

    /// One was set, or could be.
    pub(crate) fn set(&mut self) {
        self.count(|summary| summary.set += 1);
    }

    /// One was there already.
    pub(crate) fn unchanged(&mut self) {
        self.count(|summary| summary.unchanged += 1);
    }

    /// One was not set.
    pub(crate) fn failed(&mut self, place: Place, name: Option<String>, reason: String) {
        let shown = name.as_deref().map_or("without a name", shortened);
        self.progress
            .above(|| output::note(&format!("failed: {shown} ({place}): {reason}")));
        self.count(|summary| {
            summary.failed += 1;
            if summary.failures.len() < FAILURES_LISTED_MAX {
                summary.failures.push(FailedEntry {
                    name: name.map(|name| shortened(&name).to_owned()),
                    entry: place.position,
                    line: place.line,
                    reason,
                });
            }
        });
    }

    /// Ends the report.
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
            let told = counts.map(|(name, count)| format!("{name}: {count}"));
            let told = told.collect::<Vec<_>>().join(", ");
            self.progress.above(|| output::note(&told));
        }
    }
}

impl Summary {
    /// What is shown of it: how many of what.
    fn counts(&self) -> impl Iterator<Item = (&'static str, usize)> {
        let set = if self.dry_run { "could be set" } else { "set" };
        let counts = [
            (set, self.set, true),
            ("unchanged", self.unchanged, self.unchanged > 0),
            ("failed", self.failed, true),
            ("not tried", self.not_tried, self.not_tried > 0),
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
        let members = counts.map(|(name, count)| (name.to_owned(), count.to_string()));
        Table::Members(members.collect())
    }
}

/// What is shown of a name, which may be anything where it was refused.
fn shortened(name: &str) -> &str {
    match name.char_indices().nth(SHOWN_CHARACTERS_MAX) {
        Some((end, _)) => name.get(..end).unwrap_or_default(),
        None => name,
    }
}

/// How many failures the summary names. All are told on standard error.
const FAILURES_LISTED_MAX: usize = 1_000;

/// A name may have 255 characters; of one that has more, its beginning tells which it is.
const SHOWN_CHARACTERS_MAX: usize = 300;
