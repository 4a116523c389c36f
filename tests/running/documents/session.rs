//! Runs the commands of a session.

use std::{
    fmt::Write,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use keywright_harness::{
    folder_of_user, is_available, key_file, server_program, toolchain_program, user_cache,
    workspace,
};
use tempfile::TempDir;

use super::markdown::{Session, Step, is_as_shown};
use crate::layout::Ports;

/// Runs the commands of a session, and compares their output with the document.
pub(super) fn replay(document: &str, session: &Session) {
    let folder = TempDir::new().unwrap();
    let Some(sandbox) = Sandbox::prepare(folder.path(), &session.kind) else {
        return;
    };
    sandbox.run(session);
    let mut differences = String::new();
    for (number, step) in session.steps.iter().enumerate() {
        let Some(difference) = sandbox.difference(number, step) else {
            continue;
        };
        // Writing to a string does not fail.
        let _ = writeln!(
            differences,
            "{document}:{}: {}\n{difference}",
            step.line, step.command
        );
        if difference.starts_with(ENDED) {
            break;
        }
    }
    let log = fs::read_to_string(sandbox.log()).unwrap_or_default();
    assert!(differences.is_empty(), "{differences}\n== log ==\n{log}");
}

/// The environment of a session.
struct Sandbox {
    root: PathBuf,
    preparation: String,
    /// Texts in the document, and their replacements.
    names: Vec<(String, String)>,
    ports: Ports,
    /// The URL of a database, if the session needs one.
    database: String,
}

impl Sandbox {
    /// Returns `None` and prints a message if a required program is not installed.
    fn prepare(root: &Path, kind: &str) -> Option<Self> {
        if kind == AUTHORS && !has_programs_of_authors() {
            return None;
        }
        let database = if ON_POSTGRES.contains(&kind) {
            keywright_test_postgres::shared()?.new_database()
        } else {
            String::new()
        };
        let file = sessions().join(format!("{kind}.sh"));
        let preparation = fs::read_to_string(file)
            .unwrap_or_else(|cause| panic!("there is no session {kind}: {cause}"));
        for folder in ["home", "root", "work", "written"] {
            fs::create_dir(root.join(folder)).unwrap();
        }
        let ports = Ports::reserve();
        let mut names = names(root, &ports);
        names.extend(database_names(&database));
        Some(Self {
            root: root.to_owned(),
            preparation,
            names,
            ports,
            database,
        })
    }

    fn run(&self, session: &Session) {
        let program = self.root.join("session");
        fs::write(&program, self.program(session)).unwrap();
        let log = fs::File::create(self.log()).unwrap();
        let mut command = Command::new("timeout");
        command
            .args([SECONDS_MAX, "bash", "--noprofile", "--norc"])
            .arg(&program)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("LC_ALL", "C.UTF-8")
            .envs(self.variables())
            .current_dir(self.root.join("work"))
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log);
        // Errors are reported by command.
        command.status().unwrap();
    }

    /// Returns the shell script. One shell runs all commands, so that variables persist.
    fn program(&self, session: &Session) -> String {
        let mut program = format!("{SHARED}\n{}\n", self.preparation);
        let written = self.root.join("written");
        let written = written.display();
        for (number, step) in session.steps.iter().enumerate() {
            let command = self.localized(&step.command);
            // Writing to a string does not fail.
            let _ = writeln!(program, "{{\n{command}\n}} >{written}/{number} 2>&1");
            let _ = writeln!(program, "ended $? {written}/{number}");
        }
        program
    }

    fn variables(&self) -> [(&'static str, String); 16] {
        let text = |path: &Path| path.display().to_string();
        [
            (
                "CACHE_FOLDER",
                text(&folder_of_user("XDG_CACHE_HOME", ".cache")),
            ),
            (
                "CARGO_FOLDER",
                text(&folder_of_user("CARGO_HOME", ".cargo")),
            ),
            ("COMPONENTS", text(&workspace().join("target/components"))),
            ("DATABASE_URL", self.database.clone()),
            ("HOME", text(&self.root.join("home"))),
            ("KEYS", text(key_file("ca.pem").parent().unwrap())),
            (
                "MANAGEMENT_PORT",
                self.ports.management.number().to_string(),
            ),
            ("PORT", self.ports.first.number().to_string()),
            ("PROGRAM", text(&server_program())),
            ("ROOT", text(&self.root.join("root"))),
            (
                "RUSTUP_FOLDER",
                text(&folder_of_user("RUSTUP_HOME", ".rustup")),
            ),
            ("SECOND_PORT", self.ports.second.number().to_string()),
            ("SESSION", text(&self.root)),
            ("SESSIONS", text(&sessions())),
            ("WORKSPACE", text(&workspace())),
            ("XDG_CACHE_HOME", text(&user_cache())),
        ]
    }

    /// Returns the error of a command, if any.
    fn difference(&self, number: usize, step: &Step) -> Option<String> {
        let file = self.root.join("written").join(number.to_string());
        let written = fs::read(&file).unwrap_or_default();
        let written = String::from_utf8_lossy(&written);
        let status = fs::read_to_string(file.with_extension("status")).unwrap_or_default();
        if status.trim() != "0" {
            return Some(format!("{ENDED} {:?} after\n{written}", status.trim()));
        }
        let expected = self.localized(step.expected.as_deref()?);
        let is_match = is_as_shown(&expected, &written);
        (!is_match).then(|| format!("shown:\n{expected}written:\n{written}"))
    }

    /// Replaces addresses and folders of the document.
    fn localized(&self, text: &str) -> String {
        let names = self.names.iter();
        names.fold(text.to_owned(), |text, (name, replacement)| {
            text.replace(name, replacement)
        })
    }

    fn log(&self) -> PathBuf {
        self.root.join("log")
    }
}

/// Returns whether the additional programs that plugin authors need are installed.
fn has_programs_of_authors() -> bool {
    let has_compiler = toolchain_program("zig").is_some();
    has_compiler
        && ["docker-registry", "minisign"]
            .into_iter()
            .all(is_available)
}

/// Returns the folder of the scripts that prepare sessions.
fn sessions() -> PathBuf {
    workspace().join("tests/running/documents/sessions")
}

/// Returns the addresses and folders in the documents, and their replacements.
fn names(root: &Path, ports: &Ports) -> Vec<(String, String)> {
    let addresses = [
        ("keywright.example:8844", &ports.first),
        ("127.0.0.1:8844", &ports.first),
        ("127.0.0.1:9001", &ports.management),
        ("127.0.0.1:8845", &ports.second),
        ("registry.example", &ports.second),
    ];
    let addresses = addresses.map(|(name, port)| {
        let local = format!("127.0.0.1:{}", port.number());
        (name.to_owned(), local)
    });
    let root = root.join("root");
    let root = root.display();
    let folders = ["/etc/", "/run/", "/usr/", "/var/"].into_iter();
    let folders = folders.flat_map(|folder| {
        [" ", "=", ">", "\"", ":", "'", "\n"].map(|before| {
            (
                format!("{before}{folder}"),
                format!("{before}{root}{folder}"),
            )
        })
    });
    addresses.into_iter().chain(folders).collect()
}

/// Returns the database addresses in the documents, and their replacements as shell text.
fn database_names(url: &str) -> Vec<(String, String)> {
    let escaped = url.replace('&', "\\&");
    let Some((_, server)) = escaped.split_once('?') else {
        return Vec::new();
    };
    vec![
        (
            "postgres://keywright@db.example/keywright_restored".to_owned(),
            format!("postgres:///keywright_restored?{server}"),
        ),
        (
            "postgres://keywright@db.example/keywright".to_owned(),
            escaped.clone(),
        ),
        ("postgres://credhub@db.example/credhub".to_owned(), escaped),
    ]
}

const SHARED: &str = include_str!("sessions/shared.sh");

/// The sessions that need a PostgreSQL database.
const ON_POSTGRES: [&str; 2] = ["migration", "postgres"];

/// The session of plugin authors.
const AUTHORS: &str = "authors";

/// Maximum duration of a session, in seconds, for `timeout`. It exceeds the time of several calls of `wait_for`.
const SECONDS_MAX: &str = "1800";

/// The marker of a failed command.
const ENDED: &str = "exited with status";
