//! Other programs, for independent verification.

use std::{
    io::{self, Write},
    process::{Command, Output, Stdio},
};

/// A run of another program.
#[derive(Clone, Debug)]
pub struct Program {
    /// Whether it succeeded.
    pub is_success: bool,
    /// The standard output.
    pub output: String,
    /// The standard error.
    pub errors: String,
}

impl Program {
    /// Runs a program with a text as standard input.
    pub fn run(name: &str, arguments: &[&str], input: &str) -> Self {
        let mut command = Command::new(name);
        command.args(arguments);
        Self::finish(&mut command, input)
    }

    /// The same with a prepared command.
    pub fn finish(command: &mut Command, input: &str) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|cause| panic!("{command:?} can't be started: {cause}"));
        // A program that ignores its input closes it early, which is allowed.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        let Output {
            status,
            stdout,
            stderr,
        } = child.wait_with_output().unwrap();
        Self {
            is_success: status.success(),
            output: String::from_utf8_lossy(&stdout).into_owned(),
            errors: String::from_utf8_lossy(&stderr).into_owned(),
        }
    }

    /// Returns the output of a successful program.
    #[track_caller]
    pub fn expect_success(self) -> String {
        assert!(self.is_success, "{self:?}");
        self.output
    }
}

/// Whether a program is installed; if not, prints that the test is skipped.
pub fn is_available(name: &str) -> bool {
    let found = std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(name).is_file()));
    assert!(
        found || std::env::var_os("CI").is_none(),
        "{name} is required in CI"
    );
    if !found {
        tell(&format!("skipped: {name} is not installed"));
    }
    found
}

/// Prints a message to the terminal, even if output of passing tests is captured.
pub fn tell(words: &str) {
    // Standard error may be closed, which is allowed.
    let _ = writeln!(io::stderr(), "{words}");
}
