//! The output of commands.

use std::{
    fmt::Display,
    io::{self, IsTerminal, Write},
    process::ExitCode,
    time::Duration,
};

use indicatif::{ProgressBar, ProgressStyle};

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular_and_zero_is_plural() {
        for (count, words) in [(0, "0 versions"), (1, "1 version"), (2, "2 versions")] {
            assert_eq!(counted(count, "version"), words);
        }
    }
}
