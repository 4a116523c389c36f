//! Input: texts from files and standard input, JSON arguments, and prompts.

use std::{
    fmt::Display,
    fs::File,
    io::{self, BufRead, IsTerminal, Read, Write},
    path::Path,
    str::FromStr,
    thread,
};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use serde_json::{Map, Value};
use tokio::sync::oneshot;
use zeroize::Zeroizing;

use crate::{Secret, SecretJson, command_error::CommandError, new_file::FileAccessError};

/// Reads a text from a file, or from standard input if the path is `-`.
pub(crate) fn text_of(path: &Path) -> Result<Zeroizing<String>, CommandError> {
    if path == Path::new("-") {
        return read_text(io::stdin().lock(), &"standard input");
    }
    let file = File::open(path).map_err(|cause| FileAccessError::new(path, "read", cause))?;
    read_text(file, &path.display())
}

/// Parses a credential name. Only rejects an empty one; the server checks the rest.
pub(crate) fn name(argument: &str) -> Result<String, String> {
    if argument.is_empty() {
        return Err("a credential name must not be empty".to_owned());
    }
    Ok(argument.to_owned())
}

/// Parses a path. Requires `/` for all credentials: an empty path may be an unset variable of a script.
pub(crate) fn path(argument: &str) -> Result<String, String> {
    if argument.is_empty() {
        return Err("must not be empty; use `/` for all credentials".to_owned());
    }
    Ok(argument.to_owned())
}

/// Parses a whole number that is not negative.
pub(crate) fn number<T: FromStr>(argument: &str) -> Result<T, String> {
    let max = u64::MAX >> (64 - 8 * size_of::<T>());
    let number = argument.parse();
    number.map_err(|_| format!("must be a whole number from 0 to {max}"))
}

/// Parses a number of concurrent requests.
pub(crate) fn parallel(argument: &str) -> Result<u8, String> {
    let count = argument.parse().ok();
    let count = count.filter(|count| (1..=PARALLEL_MAX).contains(count));
    count.ok_or_else(|| format!("must be a whole number from 1 to {PARALLEL_MAX}"))
}

/// Parses metadata, a JSON object, from an argument. Preserves the text verbatim.
pub(crate) fn metadata(argument: &str) -> Result<SecretJson, String> {
    json_object(argument)?;
    keywright_json::read(argument).map_err(|cause| cause.to_string())
}

/// Parses a JSON object from an argument.
pub fn json_object(argument: &str) -> Result<Map<String, Value>, String> {
    match keywright_json::read(argument) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err("must be a JSON object".to_owned()),
        Err(cause) => Err(cause.to_string()),
    }
}

/// Reads a text to its end. Error messages contain `name`.
pub(crate) fn read_text(
    source: impl Read,
    name: &dyn Display,
) -> Result<Zeroizing<String>, CommandError> {
    let mut text = Zeroizing::new(String::new());
    let read = source.take(BYTES_MAX + 1).read_to_string(&mut text);
    let bytes = read.map_err(|cause| {
        CommandError::Other(match cause.kind() {
            io::ErrorKind::InvalidData => format!("{name} is not UTF-8"),
            _ => format!("could not read {name}: {cause}"),
        })
    })?;
    if bytes as u64 > BYTES_MAX {
        return Err(CommandError::Other(format!(
            "{name} is longer than {BYTES_MAX} bytes"
        )));
    }
    Ok(text)
}

/// Removes one trailing newline, which editors add.
pub(crate) fn without_line_end(text: &str) -> &str {
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.strip_suffix('\r').unwrap_or(text)
}

/// Prompts for a line of text. Requires a terminal.
pub(crate) async fn line(question: &str) -> Result<String, CommandError> {
    let line = prompt(question, Echo::On).await?;
    Ok(line.expose().to_owned())
}

/// Reads a secret: from a prompt without echo on a terminal, otherwise from the first line of standard input.
pub(crate) async fn secret_line(question: &str) -> Result<Secret, CommandError> {
    if !io::stdin().is_terminal() {
        let line = first_line(io::stdin().lock()).map_err(|cause| {
            CommandError::Other(format!("could not read standard input: {cause}"))
        })?;
        return of_input(&line, question);
    }
    prompt(question, Echo::Off).await
}

/// Reads a secret that may have several lines: from a prompt without echo on a terminal (one line), otherwise all of standard
/// input without its trailing newline.
pub(crate) async fn secret_of_input(question: &str) -> Result<Secret, CommandError> {
    if io::stdin().is_terminal() {
        return prompt(question, Echo::Off).await;
    }
    let text = read_text(io::stdin().lock(), &"standard input")?;
    of_input(&text, question)
}

fn of_input(text: &str, question: &str) -> Result<Secret, CommandError> {
    if text.is_empty() {
        return Err(CommandError::Other(format!(
            "could not read the {}: standard input is empty",
            question.to_lowercase()
        )));
    }
    Ok(secret(text))
}

/// Prompts for confirmation on the terminal. Without a terminal, fails and suggests the argument to use instead.
pub(crate) async fn confirm(question: &str, argument: &str) -> Result<bool, CommandError> {
    if !io::stdin().is_terminal() {
        return Err(CommandError::Usage(format!(
            "can't prompt for confirmation: standard input is not a terminal; use {argument}"
        )));
    }
    let line = prompt(&format!("{question} [y/N]"), Echo::On).await?;
    let line = line.expose().trim().to_ascii_lowercase();
    Ok(line == "y" || line == "yes")
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Echo {
    On,
    Off,
}

/// Prompts on the terminal. Dropping the future restores the echo and starts a new line.
async fn prompt(question: &str, echo: Echo) -> Result<Secret, CommandError> {
    let failed =
        |cause: io::Error| CommandError::Other(format!("prompting on the terminal: {cause}"));
    let mut prompt = Prompt::begin(echo).map_err(failed)?;
    let mut stderr = io::stderr();
    write!(stderr, "{question}: ")
        .and_then(|()| stderr.flush())
        .map_err(failed)?;
    let (sender, receiver) = oneshot::channel();
    // The read can't be interrupted. It runs on its own thread so that it does not delay the program's exit.
    thread::spawn(move || {
        let _ = sender.send(first_line(io::stdin().lock()));
    });
    let line = receiver.await;
    // With echo, the terminal has already printed the newline.
    prompt.line_has_ended = echo == Echo::On;
    drop(prompt);
    let line = line
        .map_err(|_| failed(io::ErrorKind::UnexpectedEof.into()))?
        .map_err(failed)?;
    if line.is_empty() {
        return Err(CommandError::Other(format!("{question}: no input")));
    }
    Ok(secret(&line))
}

/// A prompt on the terminal. Dropping it restores the echo, and prints a newline unless the line has ended.
struct Prompt {
    /// The state of the terminal to restore, if the echo is off.
    before: Option<Termios>,
    line_has_ended: bool,
}

impl Prompt {
    fn begin(echo: Echo) -> io::Result<Self> {
        let mut prompt = Self {
            before: None,
            line_has_ended: false,
        };
        if echo == Echo::Off {
            let mut hidden = tcgetattr(io::stdin())?;
            prompt.before = Some(hidden.clone());
            hidden
                .local_modes
                .remove(LocalModes::ECHO | LocalModes::ECHONL);
            tcsetattr(io::stdin(), OptionalActions::Flush, &hidden)?;
        }
        Ok(prompt)
    }
}

impl Drop for Prompt {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, before);
        }
        if !self.line_has_ended {
            let _ = writeln!(io::stderr());
        }
    }
}

/// Reads a line including its newline, if any.
fn first_line(source: impl BufRead) -> io::Result<Zeroizing<String>> {
    let mut line = Zeroizing::new(String::new());
    source.take(LINE_BYTES_MAX + 1).read_line(&mut line)?;
    if line.len() as u64 > LINE_BYTES_MAX {
        return Err(io::Error::other(format!(
            "the first line is longer than {LINE_BYTES_MAX} bytes"
        )));
    }
    Ok(line)
}

/// Returns the secret without its trailing newline.
fn secret(text: &str) -> Secret {
    Secret::new(without_line_end(text).to_owned())
}

/// The maximum length of a text: the largest value that the server setting `server.request_bytes_max` allows. A server with a
/// lower limit refuses longer texts.
const BYTES_MAX: u64 = 256 * 1024 * 1024;

/// The maximum number of concurrent requests.
const PARALLEL_MAX: u8 = 64;

/// The maximum length of a line, including its newline. Every token that fits into a request header is shorter.
const LINE_BYTES_MAX: u64 = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_above_the_largest_request_body_are_refused() {
        let read = |length: u64| read_text(io::repeat(b'x').take(length), &"it");
        assert_eq!(read(2 * 1024 * 1024).unwrap().len(), 2 * 1024 * 1024);
        let refused = read(256 * 1024 * 1024 + 1).unwrap_err().to_string();
        assert_eq!(refused, "it is longer than 268435456 bytes");
    }

    #[test]
    fn lines_of_more_than_64_kib_are_refused() {
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
        let expected = "the first line is longer than 65536 bytes";
        assert_eq!(refused.to_string(), expected);
    }
}
