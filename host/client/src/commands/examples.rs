//! Examples for the help texts. A test runs each of them.

use std::fmt::Write;

/// One example of a verb.
#[derive(Clone, Copy, Debug)]
pub struct Example {
    /// What the example does, in the imperative.
    pub does: &'static str,
    /// The shell command.
    pub line: &'static str,
    /// Shell commands to run first; not part of the help.
    pub before: &'static [&'static str],
}

/// The examples of one verb.
#[derive(Clone, Copy, Debug)]
pub struct VerbExamples {
    /// The verb as typed, such as `certificates list`.
    pub verb: &'static str,
    /// Its examples.
    pub examples: &'static [Example],
}

impl VerbExamples {
    pub(crate) const fn new(verb: &'static str, examples: &'static [Example]) -> Self {
        Self { verb, examples }
    }
}

/// Returns the examples section of a help text.
pub(crate) fn help(examples: &[Example]) -> String {
    let mut text = "Examples:".to_owned();
    for Example { does, line, .. } in examples {
        // Writing to a string does not fail.
        let _ = write!(text, "\n  # {does}\n  {line}");
    }
    text
}
