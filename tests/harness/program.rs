//! Other programs, as strangers that verify what the server made.

use std::{
    io::{self, Write},
    process::{Command, Output, Stdio},
};

/// A run of another program.
#[derive(Clone, Debug)]
pub struct Program {
    /// Whether it ended well.
    pub is_success: bool,
    /// What it wrote to standard output.
    pub output: String,
    /// What it wrote to standard error.
    pub errors: String,
}

impl Program {
    /// Runs a program to its end, with a text as its standard input.
    pub fn run(name: &str, arguments: &[&str], input: &str) -> Self {
        let mut command = Command::new(name);
        command.args(arguments);
        Self::finish(&mut command, input)
    }

    /// The same with a command that was prepared.
    pub fn finish(command: &mut Command, input: &str) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|cause| panic!("{command:?} can't be started: {cause}"));
        // A program that does not read its input closes it early; that is no failure of the test.
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

    /// What the program wrote, when it ended well.
    #[track_caller]
    pub fn expect_success(self) -> String {
        assert!(self.is_success, "{self:?}");
        self.output
    }
}

/// Whether a program is there; where it is not, the test that needs it says that it is skipped.
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

/// Says something to whoever runs the tests, past what keeps the words of tests that pass to itself.
pub fn tell(words: &str) {
    // Nobody may be listening, which is no failure of the test.
    let _ = writeln!(io::stderr(), "{words}");
}
