//! A progress bar on standard error, if it is a terminal.

use std::{
    io::{self, IsTerminal},
    time::Duration,
};

use indicatif::{ProgressBar, ProgressStyle};

/// The progress of a transfer.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
}

impl Progress {
    /// Starts a progress bar with this label.
    pub(crate) fn begin(what: &'static str, total: usize) -> Self {
        let bar = io::stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template(TEMPLATE);
            let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
            let total = u64::try_from(total).unwrap_or(u64::MAX);
            let bar = ProgressBar::new(total).with_style(style).with_message(what);
            bar.enable_steady_tick(TICK);
            bar
        });
        Self { bar }
    }

    /// Advances by one.
    pub(crate) fn advance(&self) {
        if let Some(bar) = &self.bar {
            bar.inc(1);
        }
    }

    /// Writes other output above the bar.
    pub(crate) fn above<T>(&self, write: impl FnOnce() -> T) -> T {
        match &self.bar {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }
}

impl Drop for Progress {
    /// Leaves the bar at its last state.
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.abandon();
        }
    }
}

const TEMPLATE: &str = "{msg} {wide_bar} {human_pos} of {human_len}, {per_sec}, {eta} left";

/// The interval of redrawing without progress.
const TICK: Duration = Duration::from_millis(250);
