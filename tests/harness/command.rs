//! Runs of the program with commands other than `serve`: with a server's configuration, and as a client, in a pipe and
//! on a pseudo-terminal.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    time::Duration,
};

use serde_json::Value;
use tempfile::TempDir;

use crate::{
    Server, Terminal, key_file, programs::memory_at_most, server::program, server_program, storage,
};

/// A run of a command of the program, or of another program.
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
    /// Runs another program with a text as standard input.
    pub fn run(name: &str, arguments: &(impl Arguments + ?Sized), input: &str) -> Self {
        let mut command = Command::new(name);
        command.args(arguments.list());
        Self::finish(&mut command, input)
    }

    /// Like [`Self::run`], with a prepared command.
    pub fn finish(command: &mut Command, input: &str) -> Self {
        from_output(output_after(command, input))
    }

    /// Returns whether the program succeeded.
    pub fn is_success(&self) -> bool {
        self.status == Some(0)
    }

    /// Returns the standard output as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.output).unwrap_or_else(|cause| panic!("{cause}: {self:#?}"))
    }

    /// Asserts the exit status, and returns the run.
    #[track_caller]
    pub fn expect(self, status: i32) -> Self {
        assert_eq!(self.status, Some(status), "{self:#?}");
        self
    }
}

/// The arguments of a command: a line of words separated by spaces, or a list.
pub trait Arguments {
    /// Returns the arguments.
    fn list(&self) -> Vec<&str>;
}

impl Arguments for str {
    fn list(&self) -> Vec<&str> {
        self.split(' ').collect()
    }
}

impl Arguments for String {
    fn list(&self) -> Vec<&str> {
        self.as_str().list()
    }
}

impl Arguments for [&str] {
    fn list(&self) -> Vec<&str> {
        self.to_vec()
    }
}

impl<const COUNT: usize> Arguments for [&str; COUNT] {
    fn list(&self) -> Vec<&str> {
        self.to_vec()
    }
}

impl Arguments for Vec<&str> {
    fn list(&self) -> Vec<&str> {
        self.clone()
    }
}

impl Server {
    /// Runs a command with the configuration of this server, which keeps running.
    pub fn run_command(&self, arguments: &(impl Arguments + ?Sized)) -> Commanded {
        run_command(self.directory(), arguments)
    }
}

/// Runs a command with the configuration in the folder of a server, running or not.
pub fn run_command(directory: &Path, arguments: &(impl Arguments + ?Sized)) -> Commanded {
    output_of(&mut command(directory, arguments))
}

fn output_of(command: &mut Command) -> Commanded {
    from_output(command.output().unwrap())
}

fn from_output(output: Output) -> Commanded {
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
pub fn run_program(
    directory: &Path,
    arguments: &(impl Arguments + ?Sized),
    variables: &[(&str, &str)],
) -> Commanded {
    let mut command = program(&server_program());
    command
        .args(arguments.list())
        .envs(variables.iter().copied())
        .current_dir(directory)
        .stdin(Stdio::null());
    output_of(&mut command)
}

/// Like [`run_program`], with a closed pipe as standard output.
pub fn run_program_into_closed_pipe(
    directory: &Path,
    arguments: &(impl Arguments + ?Sized),
) -> Commanded {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = program(&server_program());
    command
        .args(arguments.list())
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(writer)
        .stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    drop(command);
    from_output(child.wait_with_output().unwrap())
}

/// Like [`run_command`], with a file size limit in KiB, to simulate a full disk.
pub fn run_command_with_files_up_to(
    kibibytes: u32,
    directory: &Path,
    arguments: &(impl Arguments + ?Sized),
) -> Commanded {
    let plain = command(directory, arguments);
    let limits = format!("ulimit -f {kibibytes}");
    output_of(limited(&limits, &plain).current_dir(directory))
}

/// Like [`run_program`], with a limit of processor seconds, beyond which the system kills the process.
pub fn run_program_with_processor_seconds(
    seconds: u32,
    directory: &Path,
    arguments: &(impl Arguments + ?Sized),
) -> Commanded {
    let mut plain = program(&server_program());
    plain.args(arguments.list());
    output_of(limited(&format!("ulimit -t {seconds}"), &plain).current_dir(directory))
}

/// Returns a command that a shell runs after setting limits.
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
pub fn memory_of_command(directory: &Path, arguments: &(impl Arguments + ?Sized)) -> u64 {
    let mut command = command(directory, arguments);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    memory_at_most(command.spawn().unwrap())
}

/// Runs a command, and kills it after this time unless it has exited.
pub fn kill_command(directory: &Path, arguments: &(impl Arguments + ?Sized), after: Duration) {
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

fn command(directory: &Path, arguments: &(impl Arguments + ?Sized)) -> Command {
    let mut command = program(&server_program());
    command
        .args(arguments.list())
        .arg("--config")
        .arg(directory.join(CONFIGURATION))
        .current_dir(directory)
        .stdin(Stdio::null());
    command
}

/// The configuration in a server's folder.
const CONFIGURATION: &str = "keywright.toml";

/// Runs the program as a client, in its own folder and with only the given environment.
pub struct Shell {
    folder: TempDir,
    variables: Vec<(String, String)>,
}

impl Shell {
    /// Creates a shell without a server.
    pub fn new() -> Self {
        let folder = TempDir::new().unwrap();
        fs::copy(key_file("ca.pem"), folder.path().join("ca.pem")).unwrap();
        let home = folder.path().display().to_string();
        let programs = server_program();
        let programs = programs.parent().unwrap().display().to_string();
        let path = std::env::var("PATH").unwrap();
        let variables = vec![
            ("HOME".to_owned(), home),
            ("PATH".to_owned(), format!("{programs}:{path}")),
            ("TERM".to_owned(), "xterm".to_owned()),
        ];
        Self { folder, variables }
    }

    /// Creates a shell whose environment names a server and the client `developer`, which has all permissions.
    pub fn of(server: &Server) -> Self {
        Self::at(server)
            .variable("KEYWRIGHT_CLIENT_ID", "developer")
            .variable("KEYWRIGHT_CLIENT_SECRET", "developer-secret")
    }

    /// Creates a shell whose environment names a server, without a login.
    pub fn at(server: &Server) -> Self {
        let authority = key_file("ca.pem").display().to_string();
        Self::new()
            .variable("KEYWRIGHT_CLIENT_SERVER", server.base_url())
            .variable("KEYWRIGHT_CLIENT_CA_CERT", &authority)
    }

    /// Adds or replaces an environment variable.
    pub fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.retain(|(have, _)| have != name);
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Removes an environment variable.
    pub fn without(mut self, name: &str) -> Self {
        self.variables.retain(|(have, _)| have != name);
        self
    }

    /// Returns the current folder, which is also the home.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the path of a file in the current folder.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs the program with empty standard input.
    pub fn run(&self, arguments: &(impl Arguments + ?Sized)) -> Commanded {
        self.run_with(arguments, "")
    }

    /// Runs the program with a text as standard input.
    pub fn run_with(&self, arguments: &(impl Arguments + ?Sized), input: &str) -> Commanded {
        let mut command = self.command();
        command.args(arguments.list());
        from_output(output_after(&mut command, input))
    }

    /// Runs a line of bash with the program as `keywright`.
    pub fn bash(&self, line: &str) -> Commanded {
        let mut command = self.prepared(Command::new("bash"));
        command.args(["-euo", "pipefail", "-c", line]);
        from_output(output_after(&mut command, ""))
    }

    /// Starts the program on a pseudo-terminal.
    pub fn on_terminal(&self, arguments: &(impl Arguments + ?Sized)) -> Terminal {
        Terminal::start(self.command_with_signals(arguments))
    }

    /// Starts another program on a pseudo-terminal.
    pub fn program_on_terminal(
        &self,
        program: &str,
        arguments: &(impl Arguments + ?Sized),
    ) -> Terminal {
        let mut command = self.prepared(Command::new(program));
        command.args(arguments.list());
        Terminal::start(command)
    }

    /// Starts the program with pipes, for a test that stops it itself.
    pub fn start(&self, arguments: &(impl Arguments + ?Sized)) -> Child {
        let mut command = self.command_with_signals(arguments);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.spawn().unwrap()
    }

    /// Runs the program, asserts success, and returns its peak memory in KiB.
    pub fn memory_of(&self, arguments: &(impl Arguments + ?Sized)) -> u64 {
        let mut command = self.command();
        command
            .args(arguments.list())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        memory_at_most(command.spawn().unwrap())
    }

    /// Returns the program with the default signal handling, even if the test process ignores signals.
    fn command_with_signals(&self, arguments: &(impl Arguments + ?Sized)) -> Command {
        let mut command = self.prepared(Command::new("env"));
        command
            .arg("--default-signal=HUP,INT,TERM")
            .arg(server_program())
            .args(arguments.list());
        command
    }

    fn command(&self) -> Command {
        self.prepared(program(&server_program()))
    }

    fn prepared(&self, mut command: Command) -> Command {
        command
            .env_clear()
            .envs(self.variables.iter().cloned())
            .current_dir(self.folder());
        command
    }
}

impl Default for Shell {
    fn default() -> Self {
        Self::new()
    }
}

/// Runs a program with a text as standard input, and returns its output.
fn output_after(command: &mut Command, input: &str) -> Output {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|cause| panic!("{command:?} can't be started: {cause}"));
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    // A program that ignores its input closes it early, which is allowed.
    let writer = std::thread::spawn(move || {
        let _ = stdin.write_all(input.as_bytes());
    });
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output
}
