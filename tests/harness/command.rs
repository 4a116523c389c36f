//! Commands other than `serve`, with a server's configuration.

use std::{
    fs,
    path::Path,
    process::{Command, Output, Stdio},
    time::Duration,
};

use tempfile::TempDir;

use crate::{Server, process::memory_at_most, server::program, server_program, storage};

/// A run of a command of the program.
#[derive(Clone, Debug)]
pub struct Commanded {
    /// The exit status; `None` if a signal killed it.
    pub status: Option<i32>,
    /// The standard output.
    pub output: String,
    /// The standard error.
    pub errors: String,
}

impl Commanded {
    /// Returns it if it has this exit status.
    #[track_caller]
    pub fn expect(self, status: i32) -> Self {
        assert_eq!(self.status, Some(status), "{self:#?}");
        self
    }
}

impl Server {
    /// Runs a command with the configuration of this server, which keeps running.
    pub fn run_command(&self, arguments: &[&str]) -> Commanded {
        run_command(self.directory(), arguments)
    }
}

/// Runs a command with the configuration in the folder of a server, running or not.
pub fn run_command(directory: &Path, arguments: &[&str]) -> Commanded {
    commanded(&mut command(directory, arguments))
}

fn commanded(command: &mut Command) -> Commanded {
    ended(command.output().unwrap())
}

fn ended(output: Output) -> Commanded {
    let Output {
        status,
        stdout,
        stderr,
    } = output;
    Commanded {
        status: status.code(),
        output: String::from_utf8(stdout).unwrap(),
        errors: String::from_utf8(stderr).unwrap(),
    }
}

/// Runs the program with exactly these arguments and additional environment variables.
pub fn run_program(directory: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Commanded {
    let mut command = program(&server_program());
    command
        .args(arguments)
        .envs(variables.iter().copied())
        .current_dir(directory)
        .stdin(Stdio::null());
    commanded(&mut command)
}

/// The same, with a closed pipe as standard output.
pub fn run_program_into_closed_pipe(directory: &Path, arguments: &[&str]) -> Commanded {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = program(&server_program());
    command
        .args(arguments)
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(writer)
        .stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    drop(command);
    ended(child.wait_with_output().unwrap())
}

/// Like [`run_command`], with a file size limit in KiB, to simulate a full disk.
pub fn run_command_with_files_up_to(
    kibibytes: u32,
    directory: &Path,
    arguments: &[&str],
) -> Commanded {
    let plain = command(directory, arguments);
    let limits = format!("trap '' XFSZ; ulimit -f {kibibytes}");
    commanded(limited(&limits, &plain).current_dir(directory))
}

/// Like [`run_program`], with a limit of processor seconds, beyond which the system kills the process.
pub fn run_program_with_processor_seconds(
    seconds: u32,
    directory: &Path,
    arguments: &[&str],
) -> Commanded {
    let mut plain = program(&server_program());
    plain.args(arguments);
    commanded(limited(&format!("ulimit -t {seconds}"), &plain).current_dir(directory))
}

/// A command that a shell runs after setting limits.
fn limited(limits: &str, plain: &Command) -> Command {
    let mut limited = Command::new("bash");
    limited
        .args(["-c", &format!("{limits}; exec \"$0\" \"$@\"")])
        .arg(plain.get_program())
        .args(plain.get_args())
        .stdin(Stdio::null());
    for (variable, _) in plain.get_envs() {
        limited.env_remove(variable);
    }
    limited
}

/// Runs a command, asserts success, and returns its peak memory in KiB.
pub fn memory_of_command(directory: &Path, arguments: &[&str]) -> u64 {
    let mut command = command(directory, arguments);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    memory_at_most(command.spawn().unwrap())
}

/// Runs a command, and kills it after this time unless it has exited.
pub fn kill_command(directory: &Path, arguments: &[&str], after: Duration) {
    let mut command = command(directory, arguments);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    std::thread::sleep(after);
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Backs up the database of a server, running or not, and restores it to a new folder, in which a server can be
/// started: with `keywright backup`, or with `pg_dump` and `pg_restore`.
pub fn copied_by_backup(directory: &Path) -> TempDir {
    let folder = TempDir::new().unwrap();
    let mut configuration = fs::read_to_string(directory.join(CONFIGURATION)).unwrap();
    if let Some((url, copy)) = storage::copy_on_postgres(directory, folder.path()) {
        configuration = configuration.replace(&url, &copy);
    } else {
        let target = folder.path().join(storage::FILE);
        run_command(directory, &["backup", target.to_str().unwrap()]).expect(0);
    }
    fs::write(folder.path().join(CONFIGURATION), configuration).unwrap();
    folder
}

fn command(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = program(&server_program());
    command
        .args(arguments)
        .arg("--config")
        .arg(directory.join(CONFIGURATION))
        .current_dir(directory)
        .stdin(Stdio::null());
    command
}

/// The configuration in a server's folder.
const CONFIGURATION: &str = "keywright.toml";
