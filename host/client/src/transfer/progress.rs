//! How far a transfer has come: a bar where standard error is a terminal, and nothing elsewhere.

use std::{
    io::{self, IsTerminal},
    time::Duration,
};

use indicatif::{ProgressBar, ProgressStyle};

/// How far a transfer has come.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
}

impl Progress {
    /// Begins to show how many of `total` are done. `what` says what of.
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

    /// One more is done.
    pub(crate) fn advance(&self) {
        if let Some(bar) = &self.bar {
            bar.inc(1);
        }
    }

    /// Writes something else, above the bar where there is one.
    pub(crate) fn above<T>(&self, write: impl FnOnce() -> T) -> T {
        match &self.bar {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }
}

impl Drop for Progress {
    /// The last state stays.
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.abandon();
        }
    }
}

const TEMPLATE: &str = "{msg} {wide_bar} {human_pos} of {human_len}, {per_sec}, {eta} left";

/// How often the bar is drawn also when nothing is done.
const TICK: Duration = Duration::from_millis(250);
