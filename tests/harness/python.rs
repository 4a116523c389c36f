//! The Python environment that `cargo xtask test` installs below `target`.

use std::{io::Write, process::Command};

use crate::workspace;

/// A program of the environment in `tests/api/description/requirements.txt`, such as `schemathesis`, or `python3` with
/// all of its packages. A missing one is reported, and is an error in CI.
pub fn python_program(name: &str) -> Option<Command> {
    let environment = workspace().join(ENVIRONMENT);
    if !environment.join(INSTALLED).is_file() {
        assert!(
            std::env::var_os("CI").is_none(),
            "{name} with its packages is required in CI"
        );
        // Bypasses the test harness, which captures the output of passing tests.
        let _ = writeln!(
            std::io::stderr(),
            "skipped: {name} is not installed in {ENVIRONMENT} (`cargo xtask test` does that where Python 3 is)"
        );
        return None;
    }
    if environment.join("pyvenv.cfg").is_file() {
        return Some(Command::new(environment.join("bin").join(name)));
    }
    // A plain folder of packages, for the system's Python.
    let program = environment.join("bin").join(name);
    let mut command = if program.is_file() {
        Command::new(program)
    } else {
        Command::new(name)
    };
    command.env("PYTHONPATH", &environment);
    Some(command)
}

/// The folder where `cargo xtask test` installs it.
const ENVIRONMENT: &str = "target/schemathesis";

/// Exists once the installation is complete.
const INSTALLED: &str = "installed.txt";
