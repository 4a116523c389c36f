//! Commands of the program besides `serve`, on a server's configuration.

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

/// Runs the program to its end with nothing but these arguments, and with more variables in its environment.
pub fn run_program(directory: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Commanded {
    let mut command = program(&server_program());
    command
        .args(arguments)
        .envs(variables.iter().copied())
        .current_dir(directory)
        .stdin(Stdio::null());
    commanded(&mut command)
}

/// The same, with nobody at the other end of its standard output.
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

/// As [`run_command`], with no file growing beyond so many KiB: a disk that is full.
pub fn run_command_with_files_up_to(
    kibibytes: u32,
    directory: &Path,
    arguments: &[&str],
) -> Commanded {
    let plain = command(directory, arguments);
    let limits = format!("trap '' XFSZ; ulimit -f {kibibytes}");
    commanded(limited(&limits, &plain).current_dir(directory))
}

/// As [`run_program`], with so many seconds of a processor's time: the system ends a process that takes more.
pub fn run_program_with_processor_seconds(
    seconds: u32,
    directory: &Path,
    arguments: &[&str],
) -> Commanded {
    let mut plain = program(&server_program());
    plain.args(arguments);
    commanded(limited(&format!("ulimit -t {seconds}"), &plain).current_dir(directory))
}

/// A command that a shell runs after it has set limits.
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

/// Runs a command to its end, which must be a good one, and returns the most memory that it had at once, in KiB.
pub fn memory_of_command(directory: &Path, arguments: &[&str]) -> u64 {
    let mut command = command(directory, arguments);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    memory_at_most(command.spawn().unwrap())
}

/// Runs a command, and ends it so much later as a crash would, unless it has ended by itself.
pub fn kill_command(directory: &Path, arguments: &[&str], after: Duration) {
    let mut command = command(directory, arguments);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    std::thread::sleep(after);
    child.kill().unwrap();
    child.wait().unwrap();
}

/// The database of a server that may be running, put by its back-up into a folder of its own, in which a server can be
/// started: by `keywright backup`, or by `pg_dump` and `pg_restore`.
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
