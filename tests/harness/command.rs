//! Commands of the program besides `serve`, on a server's configuration.

use std::{
    path::Path,
    process::{Command, Output, Stdio},
};

use crate::{Server, server::server_program, storage};

/// A run of a command of the program.
#[derive(Clone, Debug)]
pub struct Commanded {
    /// The exit status; none when a signal ended it.
    pub status: Option<i32>,
    /// What it wrote to standard output.
    pub output: String,
    /// What it wrote to standard error.
    pub errors: String,
}

impl Commanded {
    /// The same, when it ended with this status.
    #[track_caller]
    pub fn expect(self, status: i32) -> Self {
        assert_eq!(self.status, Some(status), "{self:#?}");
        self
    }
}

impl Server {
    /// Runs a command to its end, with the configuration of this server, which goes on.
    pub fn run_command(&self, arguments: &[&str]) -> Commanded {
        run_command(self.directory(), arguments)
    }
}

/// Runs a command to its end, with the configuration in the folder of a server, which may have ended.
pub fn run_command(directory: &Path, arguments: &[&str]) -> Commanded {
    outcome(&mut command(directory, arguments))
}

fn outcome(command: &mut Command) -> Commanded {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().unwrap();
    Commanded {
        status: status.code(),
        output: String::from_utf8(stdout).unwrap(),
        errors: String::from_utf8(stderr).unwrap(),
    }
}

/// Runs the program to its end with nothing but these arguments, and with more variables in its environment.
pub fn run_program(directory: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Commanded {
    let mut command = program(directory, arguments);
    command.envs(variables.iter().copied());
    outcome(&mut command)
}

fn command(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = program(directory, arguments);
    command
        .arg("--config")
        .arg(directory.join("keywright.toml"));
    command
}

fn program(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(server_program());
    command
        .args(arguments)
        .current_dir(directory)
        .env_remove("KEYWRIGHT_LOG")
        .env_remove("KEYWRIGHT_REFRESH_GOLDEN_FILES")
        .env_remove(storage::VARIABLE)
        .stdin(Stdio::null());
    command
}
