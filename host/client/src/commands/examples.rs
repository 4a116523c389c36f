//! Examples, which help shows and a test runs.

use std::fmt::Write;

/// One example of a verb.
#[derive(Clone, Copy, Debug)]
pub struct Example {
    /// What it does, as the beginning of a sentence.
    pub does: &'static str,
    /// What is typed: a line of the shell.
    pub line: &'static str,
    /// Lines that make what it needs, which help does not show.
    pub before: &'static [&'static str],
}

/// The examples of one verb.
#[derive(Clone, Copy, Debug)]
pub struct VerbExamples {
    /// The verb as it is typed, such as `certificates list`.
    pub verb: &'static str,
    /// Its examples.
    pub examples: &'static [Example],
}

impl VerbExamples {
    /// The examples of a verb.
    pub(crate) const fn new(verb: &'static str, examples: &'static [Example]) -> Self {
        Self { verb, examples }
    }
}

/// What help shows of examples.
pub(crate) fn help(examples: &[Example]) -> String {
    let mut text = "Examples:".to_owned();
    for Example { does, line, .. } in examples {
        // Writing to a string does not fail.
        let _ = write!(text, "\n  # {does}\n  {line}");
    }
    text
}
