//! Printing and wording.

use std::io::{self, Write};

use crate::started::StartRefused;

/// Prints text. A closed pipe is not an error.
pub(super) fn print(text: &str) -> Result<(), StartRefused> {
    let mut output = io::stdout();
    match output
        .write_all(text.as_bytes())
        .and_then(|()| output.flush())
    {
        Err(cause) if cause.kind() != io::ErrorKind::BrokenPipe => Err(StartRefused::while_doing(
            "writing to standard output",
            cause,
        )),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Returns a count with its unit: `1 version`, `2 versions`. The plural must end in s.
pub(super) fn counted(count: u64, singular: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {singular}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular_and_nothing_is_plural() {
        for (count, words) in [(0, "0 versions"), (1, "1 version"), (2, "2 versions")] {
            assert_eq!(counted(count, "version"), words);
        }
    }
}
