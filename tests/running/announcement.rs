//! The instructions that a development server prints.

use std::{
    fs,
    io::{BufRead, BufReader},
    os::unix::fs::{MetadataExt, chown},
    process::{Child, Command, Stdio},
};

use keywright_harness::{
    Shell, Text, compiled_plugins, key_file, run_program, server_program, workspace,
};
use tempfile::TempDir;

use crate::{
    layout::{Ports, set_mode},
    unprivileged::UNPRIVILEGED,
};

#[test]
fn printed_instructions_work_and_are_in_the_readme() {
    let folder = TempDir::new().unwrap();
    let server = Development::start(&folder);
    let lines: Vec<_> = server
        .lines
        .iter()
        .filter_map(|line| line.strip_prefix("  "))
        .collect();
    let [path, login, generate, get, find, token] = lines[..] else {
        panic!("{lines:?}");
    };
    assert!(path.starts_with("export PATH="), "{path}");

    let output = type_lines(&folder, &lines);
    output.assert_contains("\"name\": \"/demo/password\"");
    output.assert_contains("\"access_token\":");
    assert!(token.starts_with("curl "), "{token}");

    let readme = fs::read_to_string(workspace().join("README.md")).unwrap();
    let authority = folder.path().join(".keywright/tls/ca.pem");
    let login = login
        .replace(server.address(), "https://127.0.0.1:8844")
        .replace(authority.to_str().unwrap(), ".keywright/tls/ca.pem");
    let mut rest = readme.as_str();
    for line in [&login, generate, get, find] {
        let shown = format!("\n$ {line}\n");
        let Some((_, behind)) = rest.split_once(&shown) else {
            panic!("the README lacks this command, or has it in another order: {line}");
        };
        rest = behind;
    }
    assert!(
        server
            .lines
            .iter()
            .any(|line| line.starts_with("The console for browsers is at https://127.0.0.1:"))
    );
    drop(server);
    expect_a_note_without_a_console(&folder);
}

#[test]
fn a_low_port_is_accepted_for_a_development_server() {
    let folder = TempDir::new().unwrap();
    let components = workspace().join("target/components");
    let arguments = ["develop", "--directory", "a", "--listen", "0.0.0.0:80"];
    let plugins = ["--plugins", components.to_str().unwrap()];
    let run = run_program(folder.path(), &[&arguments[..], &plugins].concat(), &[]).expect(1);
    // Only the address is refused, not the port.
    run.errors.assert_contains("can't be served on 0.0.0.0:80");
}

#[test]
fn a_failed_start_leaves_no_incomplete_configuration() {
    let shell = Shell::new();
    let components = workspace().join("target/components");
    let develop = format!("develop --directory a --plugins {}", components.display());
    // Of the generated files, only the configuration is larger than 2 KiB.
    let run = shell.bash(&format!("ulimit -f 2; keywright {develop}"));
    let errors = run.expect(1).errors;
    errors.assert_contains("keywright.toml: File too large");
    assert!(!shell.file("a/keywright.toml").exists());
}

/// Another user of the machine could have prepared the folder.
#[test]
fn a_folder_that_other_users_own_or_can_write_to_is_rejected() {
    let folder = TempDir::new().unwrap();
    let directory = folder.path().join("a");
    fs::create_dir(&directory).unwrap();
    fs::write(directory.join("keywright.toml"), "malformed").unwrap();
    let develop = || {
        let arguments = ["develop", "--directory", "a", "--plugins", "absent"];
        run_program(folder.path(), &arguments, &[]).expect(1).errors
    };
    for (mode, is_trusted) in [(0o700, true), (0o755, true), (0o775, false), (0o757, false)] {
        set_mode(&directory, mode);
        let expected = if is_trusted {
            "malformed"
        } else {
            "must be writable only by"
        };
        develop().assert_contains(expected);
    }
    set_mode(&directory, 0o700);
    if fs::metadata(&directory).unwrap().uid() == 0 {
        chown(&directory, Some(UNPRIVILEGED), None).unwrap();
        develop().assert_contains("must belong to");
    }
}

/// Starts the server with a configuration without a console, as earlier versions generated it, and expects a note.
fn expect_a_note_without_a_console(folder: &TempDir) {
    let file = folder.path().join(".keywright/keywright.toml");
    let configuration = fs::read_to_string(&file).unwrap();
    let (before, section) = configuration.split_once("[console]\n").unwrap();
    let (_, after) = section.split_once("\n[").unwrap();
    fs::write(&file, format!("{before}[{after}")).unwrap();
    let lines = Development::start(folder).lines.join("\n");
    lines.assert_contains("no section [console]");
}

/// A development server and its instructions.
struct Development {
    child: Child,
    lines: Vec<String>,
    _ports: Ports,
}

impl Development {
    fn start(folder: &TempDir) -> Self {
        let ports = Ports::reserve();
        let mut child = Command::new(server_program())
            .arg("develop")
            .arg("--directory")
            .arg(folder.path().join(".keywright"))
            .arg("--plugins")
            .arg(workspace().join("target/components"))
            .args(["--listen", &format!("127.0.0.1:{}", ports.first.number())])
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("KEYWRIGHT_ENCRYPTION__KEYS", shared_key())
            .env("KEYWRIGHT_PLUGINS__CACHE_DIRECTORY", compiled_plugins())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let output = child.stdout.take().unwrap();
        let mut server = Self {
            child,
            lines: Vec::new(),
            _ports: ports,
        };
        for line in BufReader::new(output).lines().map(Result::unwrap) {
            let is_last = line.starts_with("Stop the server");
            server.lines.push(line);
            if is_last {
                return server;
            }
        }
        panic!("the server exited: {:?}", server.lines);
    }

    fn address(&self) -> &str {
        let mut lines = self.lines.iter();
        let address = lines.find_map(|line| line.strip_prefix("Keywright listens on "));
        address.unwrap()
    }
}

/// Returns the encryption key of the tests, with which a server can use plugins that other tests compiled.
fn shared_key() -> String {
    let file = key_file("encryption.key").display().to_string();
    format!("[{{ provider = \"raw\", file = {file:?}, active = true }}]")
}

/// Runs the lines in a shell without other configuration, and returns their output.
fn type_lines(folder: &TempDir, lines: &[&str]) -> String {
    let output = Command::new("bash")
        .args(["-euo", "pipefail", "-c", &lines.join("\n")])
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", folder.path())
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

impl Drop for Development {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
