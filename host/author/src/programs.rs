//! Finds and runs external programs, and prints their command lines.

use std::{
    env,
    ffi::{OsStr, OsString},
    fmt::Write as _,
    io::{self, Write as _},
    os::unix::fs::PermissionsExt,
    path::{self, Path, PathBuf},
    process::{Command, ExitStatus, Stdio},
};

use keywright_json::is_control_or_invisible;

use crate::error::ProjectError;

/// The search path for external programs.
#[derive(Clone, Debug, Default)]
pub struct Programs {
    added_folders: Vec<PathBuf>,
}

impl Programs {
    /// Searches the `PATH` of this process.
    pub fn on_path() -> Self {
        Self::default()
    }

    /// Searches this folder first.
    pub fn first_in(mut self, folder: PathBuf) -> Self {
        let folder = path::absolute(&folder).unwrap_or(folder);
        self.added_folders.insert(0, folder);
        self
    }

    pub(crate) fn find(&self, name: &str) -> Option<Program> {
        let mut files = self.folders().map(|folder| folder.join(name));
        // The program is started in another folder.
        let file = path::absolute(files.find(|file| is_program(file))?).ok()?;
        // Printed as a user would type it.
        let is_in_added_folder = self
            .added_folders
            .iter()
            .any(|folder| file.starts_with(folder));
        let display_name = if is_in_added_folder {
            file.clone().into_os_string()
        } else {
            name.into()
        };
        Some(Program { file, display_name })
    }

    fn folders(&self) -> impl Iterator<Item = PathBuf> {
        let path = env::var_os(PATH).unwrap_or_default();
        let on_path: Vec<PathBuf> = env::split_paths(&path).collect();
        self.added_folders.clone().into_iter().chain(on_path)
    }

    /// Returns the `PATH` for started programs, which may start others.
    fn path(&self) -> OsString {
        env::join_paths(self.folders()).unwrap_or_else(|_| env::var_os(PATH).unwrap_or_default())
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Program {
    file: PathBuf,
    display_name: OsString,
}

impl Program {
    /// Returns the program in this file, or `None` if the file is not executable. Command lines show `display_name`.
    pub(crate) fn at(file: PathBuf, display_name: impl Into<OsString>) -> Option<Self> {
        let display_name = display_name.into();
        is_program(&file).then_some(Self { file, display_name })
    }
}

fn is_program(file: &Path) -> bool {
    let is_executable = |metadata: std::fs::Metadata| {
        metadata.is_file() && metadata.permissions().mode() & EXECUTABLE != 0
    };
    file.metadata().is_ok_and(is_executable)
}

/// The execute bits of a file mode.
const EXECUTABLE: u32 = 0o111;

/// A call of an external program in the folder of a project.
pub(crate) struct Call<'a> {
    program: &'a Program,
    command: Command,
}

impl<'a> Call<'a> {
    pub(crate) fn new(programs: &Programs, folder: &Path, program: &'a Program) -> Self {
        let mut command = Command::new(&program.file);
        command
            .env(PATH, programs.path())
            .current_dir(folder)
            .stdin(Stdio::null());
        Self { program, command }
    }

    pub(crate) fn arguments<S: AsRef<OsStr>>(
        mut self,
        arguments: impl IntoIterator<Item = S>,
    ) -> Self {
        self.command.args(arguments);
        self
    }

    pub(crate) fn variable(mut self, name: &'static str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    /// Runs the program with its output redirected to standard error.
    pub(crate) fn run(mut self) -> Result<(), ProjectError> {
        self.print_command_line();
        let status = self.command.stdout(io::stderr()).status();
        self.check_status(status.map_err(|cause| self.not_started(cause))?)
    }

    /// Runs the program, and returns whether it succeeded, with all its output in the order of the streams. Nothing is printed.
    pub(crate) fn captured(mut self) -> Result<(ExitStatus, String), ProjectError> {
        self.print_command_line();
        let output = self.command.output();
        let output = output.map_err(|cause| self.not_started(cause))?;
        let text = [output.stdout, output.stderr].concat();
        Ok((output.status, String::from_utf8_lossy(&text).into_owned()))
    }

    /// Runs the program and returns its standard output.
    pub(crate) fn output(mut self) -> Result<Vec<u8>, ProjectError> {
        self.print_command_line();
        let output = self.command.stderr(Stdio::inherit()).output();
        let output = output.map_err(|cause| self.not_started(cause))?;
        self.check_status(output.status)?;
        Ok(output.stdout)
    }

    /// Runs the program silently and returns its standard output, or `None` if it fails.
    pub(crate) fn probe(mut self) -> Option<Vec<u8>> {
        let output = self.command.output().ok()?;
        output.status.success().then_some(output.stdout)
    }

    fn check_status(&self, status: ExitStatus) -> Result<(), ProjectError> {
        if status.success() {
            return Ok(());
        }
        let tool = self.program.display_name.display();
        Err(ProjectError::new(format!("{tool} failed ({status})")))
    }

    fn not_started(&self, cause: io::Error) -> ProjectError {
        let tool = self.program.display_name.display();
        ProjectError::caused_by(format!("could not start {tool}"), cause)
    }

    fn print_command_line(&self) {
        // Standard error may be closed.
        let _ = writeln!(io::stderr(), "+ {}", self.command_line());
    }

    fn command_line(&self) -> String {
        let mut line = String::new();
        let folder = self.command.get_current_dir();
        // Writing to a string does not fail.
        if let Some(folder) = folder.filter(|folder| *folder != Path::new(".")) {
            let _ = write!(line, "cd {} && ", quoted(folder.as_os_str()));
        }
        let variables = self.command.get_envs().filter(|(name, _)| *name != PATH);
        for (name, value) in variables {
            let value = quoted(value.unwrap_or_default());
            let _ = write!(line, "{}={value} ", name.display());
        }
        let _ = write!(line, "{}", quoted(&self.program.display_name));
        for argument in self.command.get_args() {
            let _ = write!(line, " {}", quoted(argument));
        }
        line
    }
}

/// The variable with the search path, which command lines do not show.
const PATH: &str = "PATH";

/// Escapes characters that could control a terminal.
pub(crate) fn printable(text: &str) -> String {
    let mut printable = String::new();
    for character in text.chars() {
        if is_control_or_invisible(character) {
            printable.extend(character.escape_unicode());
        } else {
            printable.push(character);
        }
    }
    printable
}

/// Quotes a word for a shell if necessary.
fn quoted(word: &OsStr) -> String {
    let word = printable(&word.to_string_lossy());
    let is_plain =
        |character: char| character.is_ascii_alphanumeric() || "-_./=:,+@%".contains(character);
    if !word.is_empty() && word.chars().all(is_plain) {
        word
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_line_is_quoted_for_a_shell() {
        let programs = Programs::on_path();
        let program = Program {
            file: "/bin/echo".into(),
            display_name: "echo".into(),
        };
        let call = Call::new(&programs, Path::new("a folder"), &program)
            .variable("GOOS", "wasip1")
            .arguments(["-o", "it's", "", "-ldflags=-s -w", "./a\u{1b}"]);
        assert_eq!(
            call.command_line(),
            r"cd 'a folder' && GOOS=wasip1 echo -o 'it'\''s' '' '-ldflags=-s -w' './a\u{1b}'"
        );
        let here = Call::new(&programs, Path::new("."), &program).command_line();
        assert_eq!(here, "echo");
    }

    #[test]
    fn given_folder_is_searched_before_path() {
        let folder = tempfile::tempdir().unwrap();
        let programs = Programs::on_path().first_in(folder.path().to_owned());
        assert_eq!(programs.find("sh").unwrap().display_name, "sh");
        let file = folder.path().join("sh");
        std::fs::write(&file, "").unwrap();
        // The file is not executable yet.
        assert_eq!(programs.find("sh").unwrap().display_name, "sh");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(programs.find("sh").unwrap().display_name, file);
        assert!(programs.find("no-such-program").is_none());
    }
}
