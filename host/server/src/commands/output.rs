//! The output of commands: text, and progress as a bar on a terminal, otherwise as lines at intervals.

use std::{
    fmt::Display,
    io::{self, IsTerminal, Write},
    process::ExitCode,
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressStyle};
use keywright_client::progress_bar;

use crate::started::StartupError;

/// Prints text. A closed pipe is not an error.
pub(super) fn print(text: &str) -> Result<(), StartupError> {
    let mut output = io::stdout();
    match output
        .write_all(text.as_bytes())
        .and_then(|()| output.flush())
    {
        Err(cause) if cause.kind() != io::ErrorKind::BrokenPipe => Err(StartupError::while_doing(
            "writing to standard output",
            cause,
        )),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Prints a line to standard error. A failure is ignored: there is nowhere to report it.
pub(crate) fn print_error(line: impl Display) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Escapes invisible characters: untrusted text must not control the terminal.
pub(super) fn escaped(text: &str) -> String {
    let characters = text.chars().map(|character| match character {
        '"' | '\'' | '\\' => character.to_string(),
        _ => character.escape_debug().to_string(),
    });
    characters.collect()
}

/// Returns the exit status of a complete command: 3 if it has findings.
pub(super) fn status(has_findings: bool) -> ExitCode {
    if has_findings {
        ExitCode::from(3)
    } else {
        ExitCode::SUCCESS
    }
}

/// Returns a count with its unit: `1 version`, `2 versions`. The plural must end in s.
pub(super) fn counted(count: u64, singular: &str) -> String {
    let suffix = if count == 1 { "" } else { "s" };
    format!("{count} {singular}{suffix}")
}

/// The progress of a command, on standard error.
pub(super) struct Progress {
    /// Hidden unless standard error is a terminal.
    bar: ProgressBar,
    /// `None` if there is a visible bar, or the command is quiet.
    lines: Option<Lines>,
}

/// Progress as lines of text, with the time of the last line.
struct Lines {
    what: &'static str,
    written_at: Instant,
}

impl Progress {
    /// Starts to show how many of `total` items are done. `what` names the items, as in `versions checked`.
    pub(super) fn start(what: &'static str, total: u64, is_quiet: bool) -> Self {
        let bar = if is_quiet {
            ProgressBar::hidden()
        } else {
            progress_bar(what, total)
        };
        let lines = Lines {
            what,
            written_at: Instant::now(),
        };
        let has_lines = !is_quiet && !io::stderr().is_terminal();
        Self {
            bar,
            lines: has_lines.then_some(lines),
        }
    }

    /// Sets the number of items done.
    pub(super) fn set_done(&mut self, done: u64) {
        self.bar.set_position(done);
        let total = self.bar.length().unwrap_or_default();
        let lines = self.lines.as_mut();
        if let Some(line) = lines.and_then(|lines| lines.due(Instant::now(), done, total)) {
            print_error(line);
        }
    }

    /// Sets the total, as far as it is known.
    pub(super) fn set_total(&mut self, total: u64) {
        self.bar.set_length(total);
    }

    /// Writes other output. If a bar is shown, the output appears above it.
    pub(super) fn suspend<T>(&self, write: impl FnOnce() -> T) -> T {
        self.bar.suspend(write)
    }

    /// Ends the progress; its last state stays visible.
    pub(super) fn finish(self) {
        self.bar.abandon();
        if let Some(Lines { what, .. }) = self.lines {
            let total = self.bar.length().unwrap_or_default();
            print_error(line(what, self.bar.position(), total));
        }
    }
}

impl Lines {
    /// Returns the next line, if it is due.
    fn due(&mut self, now: Instant, done: u64, total: u64) -> Option<String> {
        if now.saturating_duration_since(self.written_at) < LINES_INTERVAL {
            return None;
        }
        self.written_at = now;
        Some(line(self.what, done, total))
    }
}

fn line(what: &str, done: u64, total: u64) -> String {
    format!("{what}: {done} of {total}")
}

/// Returns a spinner for the current step of a command. It is hidden unless standard error is a terminal.
pub(super) fn spinner() -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template(SPINNER_TEMPLATE);
    let style = style.unwrap_or_else(|_| ProgressStyle::default_spinner());
    let spinner = ProgressBar::new_spinner().with_style(style);
    spinner.enable_steady_tick(TICK);
    spinner
}

/// Writes to standard error, above a progress bar or spinner.
pub(super) struct AboveProgress(pub(super) ProgressBar);

impl Write for AboveProgress {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.suspend(|| io::stderr().write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

const SPINNER_TEMPLATE: &str = "{spinner} {wide_msg} {elapsed}";

/// The redraw interval.
const TICK: Duration = Duration::from_millis(250);

/// The minimum time between two lines.
const LINES_INTERVAL: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular_and_zero_is_plural() {
        for (count, words) in [(0, "0 versions"), (1, "1 version"), (2, "2 versions")] {
            assert_eq!(counted(count, "version"), words);
        }
    }

    #[test]
    fn lines_are_written_at_the_interval() {
        let started_at = Instant::now();
        let mut lines = Lines {
            what: "versions checked",
            written_at: started_at,
        };
        let almost = started_at + LINES_INTERVAL.mul_f64(0.999);
        assert_eq!(lines.due(almost, 1, 9), None);
        let due = started_at + LINES_INTERVAL;
        let written = lines.due(due, 2, 9);
        assert_eq!(written.as_deref(), Some("versions checked: 2 of 9"));
        assert_eq!(lines.due(due, 3, 9), None);
    }
}
