//! The program as a client: in a pipe, and on a pseudo-terminal.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use tempfile::TempDir;

use crate::{
    Commanded, Server, Terminal, key_file, process::memory_at_most, server::program, server_program,
};

/// Runs the program as a client, in its own folder and with only the given environment.
pub struct Shell {
    folder: TempDir,
    variables: Vec<(String, String)>,
}

impl Shell {
    /// A shell without a server.
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

    /// A shell whose environment names a server and the client `developer`, which has all permissions.
    pub fn of(server: &Server) -> Self {
        Self::at(server)
            .variable("KEYWRIGHT_CLIENT_ID", "developer")
            .variable("KEYWRIGHT_CLIENT_SECRET", "developer-secret")
    }

    /// A shell whose environment names a server, without a login.
    pub fn at(server: &Server) -> Self {
        let authority = key_file("ca.pem").display().to_string();
        Self::new()
            .variable("KEYWRIGHT_CLIENT_SERVER", server.base_url())
            .variable("KEYWRIGHT_CLIENT_CA_CERT", &authority)
    }

    /// The same with one environment variable added or replaced.
    pub fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.retain(|(have, _)| have != name);
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The same without a variable.
    pub fn without(mut self, name: &str) -> Self {
        self.variables.retain(|(have, _)| have != name);
        self
    }

    /// The current folder, which is also the home.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The path of a file in its folder.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs the program with empty standard input.
    pub fn run(&self, arguments: &[&str]) -> Commanded {
        self.run_with(arguments, "")
    }

    /// Runs the program with a text as standard input.
    pub fn run_with(&self, arguments: &[&str], input: &str) -> Commanded {
        let mut command = self.command();
        command.args(arguments);
        finish(&mut command, input)
    }

    /// Runs a line of bash with the program as `keywright`.
    pub fn bash(&self, line: &str) -> Commanded {
        let mut command = self.prepared(Command::new("bash"));
        command.args(["-euo", "pipefail", "-c", line]);
        finish(&mut command, "")
    }

    /// Starts the program on a pseudo-terminal.
    pub fn on_terminal(&self, arguments: &[&str]) -> Terminal {
        Terminal::start(self.command_with_signals(arguments))
    }

    /// Starts another program on a pseudo-terminal.
    pub fn program_on_terminal(&self, program: &str, arguments: &[&str]) -> Terminal {
        let mut command = self.prepared(Command::new(program));
        command.args(arguments);
        Terminal::start(command)
    }

    /// Starts the program with pipes, for a test that stops it itself.
    pub fn start(&self, arguments: &[&str]) -> Child {
        let mut command = self.command_with_signals(arguments);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.spawn().unwrap()
    }

    /// Runs the program, asserts success, and returns its peak memory in KiB.
    pub fn memory_of(&self, arguments: &[&str]) -> u64 {
        let mut command = self.command();
        command
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        memory_at_most(command.spawn().unwrap())
    }

    /// The program with the signals as a shell hands them on, whatever the test itself was started to ignore.
    fn command_with_signals(&self, arguments: &[&str]) -> Command {
        let mut command = self.prepared(Command::new("env"));
        command
            .arg("--default-signal=HUP,INT,TERM")
            .arg(server_program())
            .args(arguments);
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

fn finish(command: &mut Command, input: &str) -> Commanded {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    // A program that ignores its input closes it early, which is allowed.
    let writer = std::thread::spawn(move || {
        let _ = stdin.write_all(input.as_bytes());
    });
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    Commanded {
        status: output.status.code(),
        output: String::from_utf8(output.stdout).unwrap(),
        errors: String::from_utf8(output.stderr).unwrap(),
    }
}
