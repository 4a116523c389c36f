//! What people are asked.

use std::{
    io::{self, BufRead, IsTerminal, Write},
    thread,
};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use tokio::sync::oneshot;
use zeroize::Zeroizing;

use crate::{
    Secret,
    commands::Failure,
    input::{read_text, without_line_end},
};

/// A text on one line, typed on a terminal. Without one, nobody can be asked.
pub(crate) async fn line(question: &str) -> Result<String, Failure> {
    let line = ask(question, Echo::On).await?;
    Ok(line.expose().to_owned())
}

/// A secret on one line: typed without being seen on a terminal, and else the first line of standard input.
pub(crate) async fn secret_line(question: &str) -> Result<Secret, Failure> {
    if !io::stdin().is_terminal() {
        let line = first_line(io::stdin().lock())
            .map_err(|cause| Failure::Other(format!("reading standard input: {cause}")))?;
        if line.is_empty() {
            return Err(Failure::Other(format!(
                "{question}: standard input is empty"
            )));
        }
        return Ok(secret(&line));
    }
    ask(question, Echo::Off).await
}

/// A secret of any length: typed on one line without being seen on a terminal, and else all of standard input but for the
/// line end after it.
pub(crate) async fn secret_of_input(question: &str) -> Result<Secret, Failure> {
    if io::stdin().is_terminal() {
        return ask(question, Echo::Off).await;
    }
    let text = read_text(io::stdin().lock(), &"standard input")?;
    Ok(secret(&text))
}

/// Whether the person at the terminal means it. Without a terminal nobody can be asked, and it is not done: the way out is
/// an argument, which is named.
pub(crate) async fn confirm(question: &str, argument: &str) -> Result<bool, Failure> {
    if !io::stdin().is_terminal() {
        return Err(Failure::Usage(format!(
            "{question} There is no terminal to ask on: say {argument} if you mean it"
        )));
    }
    let answer = ask(&format!("{question} [y/N]"), Echo::On).await?;
    let answer = answer.expose().trim().to_ascii_lowercase();
    Ok(answer == "y" || answer == "yes")
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Echo {
    On,
    Off,
}

/// Asks on the terminal. Dropped, it leaves it as it was, with what is typed visible again, on a new line.
async fn ask(question: &str, echo: Echo) -> Result<Secret, Failure> {
    let failed = |cause: io::Error| Failure::Other(format!("asking on the terminal: {cause}"));
    let mut line_begun = LineBegun { is_ended: false };
    let hidden = match echo {
        Echo::Off => Some(Hidden::begin().map_err(failed)?),
        Echo::On => None,
    };
    let mut stderr = io::stderr();
    write!(stderr, "{question}: ")
        .and_then(|()| stderr.flush())
        .map_err(failed)?;
    let (sender, receiver) = oneshot::channel();
    // A thread of its own: it can't be interrupted, and nothing waits for it when the program ends.
    thread::spawn(move || {
        let _ = sender.send(first_line(io::stdin().lock()));
    });
    let answer = receiver.await;
    drop(hidden);
    // Whoever sees what is typed has seen the end of the line.
    line_begun.is_ended = echo == Echo::On;
    drop(line_begun);
    let line = answer
        .map_err(|_| failed(io::ErrorKind::UnexpectedEof.into()))?
        .map_err(failed)?;
    if line.is_empty() {
        return Err(Failure::Other(format!("{question}: no answer")));
    }
    Ok(secret(&line))
}

/// A line on the terminal that ends when this goes, unless it has ended.
struct LineBegun {
    is_ended: bool,
}

impl Drop for LineBegun {
    fn drop(&mut self) {
        if !self.is_ended {
            let _ = writeln!(io::stderr());
        }
    }
}

/// The terminal while what is typed is not shown.
struct Hidden {
    before: Termios,
}

impl Hidden {
    fn begin() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut hidden = before.clone();
        hidden
            .local_modes
            .remove(LocalModes::ECHO | LocalModes::ECHONL);
        tcsetattr(io::stdin(), OptionalActions::Flush, &hidden)?;
        Ok(Self { before })
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
    }
}

/// A line with its end, or what there is where none ends.
fn first_line(source: impl BufRead) -> io::Result<Zeroizing<String>> {
    let mut line = Zeroizing::new(String::new());
    source.take(LINE_BYTES_MAX + 1).read_line(&mut line)?;
    if line.len() as u64 > LINE_BYTES_MAX {
        return Err(io::Error::other(format!(
            "its first line is longer than {LINE_BYTES_MAX} bytes"
        )));
    }
    Ok(line)
}

/// What was typed or read, without the line end after it.
fn secret(text: &str) -> Secret {
    Secret::new(without_line_end(text).to_owned())
}

/// The longest line that is read, with its end: more than the longest token that fits into the head of a request.
const LINE_BYTES_MAX: u64 = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_may_have_64_kibibytes_and_no_more() {
        for (text, length) in [
            ("x".repeat(64 * 1024), Some(64 * 1024)),
            (format!("{}\n", "x".repeat(64 * 1024 - 1)), Some(64 * 1024)),
            (format!("{}\n", "x".repeat(64 * 1024)), None),
            ("x".repeat(64 * 1024 + 1), None),
            (format!("x\n{}", "y".repeat(64 * 1024)), Some(2)),
            (String::new(), Some(0)),
        ] {
            let line = first_line(text.as_bytes());
            assert_eq!(line.ok().map(|line| line.len()), length);
        }
        let refused = first_line("x".repeat(64 * 1024 + 1).as_bytes()).unwrap_err();
        let expected = "its first line is longer than 65536 bytes";
        assert_eq!(refused.to_string(), expected);
    }
}
